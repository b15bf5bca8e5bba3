import pytest
from werkzeug.security import generate_password_hash

from worklane import cache, create_app
from worklane.extensions import db
from worklane.models import Membership, Organization, User

PEOPLE = {"olivia": "owner", "alice": "admin", "bob": "member", "erin": "guest"}


@pytest.fixture
def app():
    app = create_app({"TESTING": True, "SQLALCHEMY_DATABASE_URI": "sqlite://", "PASSWORD_METHOD": "pbkdf2:sha256:1"})
    cache.clear()
    with app.app_context():
        db.create_all()
        organization = Organization(name="Acme", slug="acme")
        for name, role in PEOPLE.items():
            password = generate_password_hash("secret", app.config["PASSWORD_METHOD"])
            user = User(email=f"{name}@example.com", name=name.title(), password_hash=password)
            db.session.add(Membership(organization=organization, user=user, role=role))
        db.session.commit()
    return app


@pytest.fixture
def login(app):
    """A client that is signed in with this name."""

    def make(name):
        client = app.test_client()
        assert (
            client.post("/auth/login", json={"email": f"{name}@example.com", "password": "secret"}).status_code == 200
        )
        return client

    return make
