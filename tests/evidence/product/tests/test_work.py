import pytest

from worklane.queue import run_pending


@pytest.fixture
def bob(login):
    return login("bob")


@pytest.fixture
def project(bob):
    return bob.post("/projects", json={"name": "Website"}).json


@pytest.fixture
def document(bob, project):
    return bob.post(f"/projects/{project['id']}/documents", json={"title": "Plan", "body": "Launch in May"}).json


def test_projects_are_listed_by_name(bob, project):
    bob.post("/projects", json={"name": "App"})

    assert [each["name"] for each in bob.get("/projects").json] == ["App", "Website"]


def test_a_private_project_is_for_its_members(login):
    alice = login("alice")
    private = alice.post("/projects", json={"name": "Merger", "visibility": "private"}).json

    assert login("bob").get(f"/projects/{private['id']}").status_code == 404
    alice.post(f"/projects/{private['id']}/members", json={"user_id": 3})
    assert login("bob").get(f"/projects/{private['id']}").status_code == 200


def test_guests_see_published_documents_of_their_projects(login, bob, project, document):
    erin = login("erin")
    bob.post(f"/projects/{project['id']}/members", json={"user_id": 4, "role": "viewer"})

    assert erin.get(f"/projects/{project['id']}/documents").json == []
    bob.post(f"/documents/{document['id']}/publish")
    assert [each["title"] for each in erin.get(f"/projects/{project['id']}/documents").json] == ["Plan"]


def test_deleted_documents_are_gone(bob, document):
    assert bob.delete(f"/documents/{document['id']}").status_code == 204
    assert bob.get(f"/documents/{document['id']}").status_code == 404


def test_tasks(bob, project):
    task = bob.post(f"/projects/{project['id']}/tasks", json={"title": "Write", "due_on": "2027-01-31"}).json

    assert bob.post(f"/tasks/{task['id']}/done").json["status"] == "done"
    assert bob.get(f"/projects/{project['id']}/tasks?status=open").json == []


def test_internal_comments_are_not_for_guests(login, bob, project, document):
    bob.post(f"/projects/{project['id']}/members", json={"user_id": 4, "role": "viewer"})
    bob.post(f"/documents/{document['id']}/publish")
    bob.post(f"/documents/{document['id']}/comments", json={"text": "Too expensive", "internal": True})
    bob.post(f"/documents/{document['id']}/comments", json={"text": "Hello"})

    assert [each["text"] for each in login("erin").get(f"/documents/{document['id']}/comments").json] == ["Hello"]


def test_links(app, bob, document):
    link = bob.post(f"/documents/{document['id']}/links", json={}).json

    assert app.test_client().get(f"/s/{link['token']}").json["title"] == "Plan"
    bob.delete(f"/links/{link['id']}")
    assert app.test_client().get(f"/s/{link['token']}").status_code == 404


def test_search(bob, document):
    assert bob.get("/search?q=launch").json[0]["title"] == "Plan"


def test_an_export_is_made_by_the_worker(app, login):
    alice = login("alice")
    export = alice.post("/exports", json={"kind": "members"}).json
    with app.app_context():
        assert run_pending() == []

    assert "bob@example.com" in alice.get(f"/exports/{export['id']}/download").text


def test_keys(app, login, project, bob):
    bob.post(f"/projects/{project['id']}/tasks", json={"title": "Write"})
    key = login("alice").post("/keys", json={"name": "CI", "scopes": ["tasks:read"]}).json["key"]
    headers = {"Authorization": f"Bearer {key}"}

    assert [each["title"] for each in app.test_client().get("/api/v1/tasks", headers=headers).json] == ["Write"]


def test_invoices(login):
    alice = login("alice")
    lines = [{"text": "Design", "quantity": 2, "unit_price": 9000}]
    invoice = alice.post("/invoices", json={"customer": "Initech", "lines": lines}).json

    assert invoice["total"] == 18000
    assert alice.post(f"/invoices/{invoice['id']}/paid").json["status"] == "paid"
    assert login("bob").get("/invoices").status_code == 403


def test_webhooks(app, login, document, bob):
    alice = login("alice")
    hook = alice.post("/webhooks", json={"url": "https://example.com", "events": ["document.published"]}).json
    bob.post(f"/documents/{document['id']}/publish")
    with app.app_context():
        run_pending()

    assert alice.get(f"/webhooks/{hook['id']}/deliveries").json[0]["delivered"]


def test_reports(login, bob, document):
    assert bob.get("/reports").json == {"documents": 1, "open_tasks": 0}
    assert bob.get("/reports/progress").json == [{"id": 1, "name": "Website", "open": 0, "done": 0}]
