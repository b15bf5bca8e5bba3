def test_login_shows_the_organization(login):
    me = login("bob").get("/auth/me").json

    assert me["organization"]["slug"] == "acme"
    assert me["organizations"][0]["role"] == "member"


def test_login_with_a_wrong_password(app):
    response = app.test_client().post("/auth/login", json={"email": "bob@example.com", "password": "wrong"})

    assert response.status_code == 401


def test_changing_the_name(login):
    assert login("bob").patch("/auth/me", json={"name": "Robert"}).json["name"] == "Robert"


def test_members_see_no_hourly_rates(login):
    members = login("bob").get("/members").json

    assert {each["name"] for each in members} == {"Olivia", "Alice", "Bob", "Erin"}
    assert "hourly_rate" not in members[0]


def test_admins_change_members_but_make_no_owners(login):
    alice = login("alice")
    bob = alice.get("/members").json[2]

    assert alice.patch(f"/members/{bob['id']}", json={"role": "admin"}).json["role"] == "admin"
    assert alice.patch(f"/members/{bob['id']}", json={"role": "owner"}).status_code == 403


def test_teams(login):
    alice = login("alice")
    team = alice.post("/teams", json={"name": "Design"}).json

    assert alice.put(f"/teams/{team['id']}/members/3").json["members"] == [{"id": 3, "name": "Bob"}]
    assert login("bob").post("/teams", json={"name": "Other"}).status_code == 403


def test_settings(login):
    login("alice").put("/settings/currency", json={"value": "CHF"})

    assert login("bob").get("/settings").json["currency"] == "CHF"
