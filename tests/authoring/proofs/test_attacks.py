"""attacks.yaml is given wrong content, wrong fixes and wrong code on purpose; `prove` has to report each."""

import shutil

import pytest

from tmkb.knowledge import pattern
from tmkb.schema import paths, problems

pytestmark = [pytest.mark.full, pytest.mark.needs("flask", "celery")]

CHECK = ".filter_by(organization_id=current_user.organization_id)"


@pytest.fixture
def folder(tmp_path):
    """A copy of a packaged pattern whose attacks are data alone."""
    return shutil.copytree(f"{paths.PATTERNS}/tmkb_auth_007", tmp_path / "tmkb_auth_007")


def edit(path, *pairs):
    text = path.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def unexpected(report):
    return {(cell.leg, cell.function, cell.variant, cell.status) for cell in report.cells if not cell.ok}


def complaints(folder):
    return [problems.line(problem).removeprefix(f"{folder}/") for problem in pattern.read(str(folder)).problems]


def test_secure_code_that_gives_way(folder, prove):
    edit(folder / "secure.py", (CHECK, ""))

    assert {(leg, status) for leg, _, variant, status in unexpected(prove(folder, False)) if variant == "secure"} == {
        (2, "gained")
    }


def test_secure_code_that_refuses_everybody(folder, prove):
    edit(folder / "secure.py", (CHECK, ".filter_by(organization_id=None)"))

    assert (3, "bob_show", "secure", "failed") in unexpected(prove(folder, False))


def test_a_crash_is_no_refusal(folder, prove):
    edit(folder / "secure.py", ("def visible_invoices():\n", "def visible_invoices():\n    abrot(404)\n"))
    report = prove(folder, False)

    assert (2, "mallory_show", "secure", "neither") in unexpected(report)
    assert any("NameError" in cell.detail and "secure.py:" in cell.detail for cell in report.cells)


def test_an_allowed_change_that_changes_nothing(folder, prove):
    edit(folder / "secure.py", ('    invoice.state = "cancelled"\n', ""))

    assert (3, "bob_cancel", "secure", "failed") in unexpected(prove(folder, False))


def test_a_wrong_fix_that_holds(folder, prove):
    shutil.copy(folder / "secure.py", folder / "wrong" / "client_tenant.py")

    assert unexpected(prove(folder, False)) == {(4, "named_tenant", "wrong client_tenant", "refused")}


def test_a_wrong_fix_that_falls_to_more_than_it_lists(folder, prove):
    edit(folder / "attacks.yaml", ("falls_to: [bob_left_show, bob_left_cancel]", "falls_to: [bob_left_show]"))

    assert unexpected(prove(folder, False)) == {(4, "bob_left_cancel", "wrong creator_or_tenant", "gained")}


def test_a_wrong_fix_that_falls_to_an_attack_of_the_proof(folder, prove):
    edit(folder / "pattern.yaml", ("attacks: attacks.yaml}", "attacks: attacks.yaml, proof: proof.py}"))
    edit(folder / "attacks.yaml", ("falls_to: [named_tenant]", "falls_to: [named_tenant, tenant_in_header]"))
    (folder / "proof.py").write_text(
        "from tmkb.authoring.proofs import outcome\nfrom tmkb.authoring.proofs.stage import stage\n\n\n"
        "def exploit_tenant_in_header(example):\n"
        "    \"\"\"Mallory names Acme in a header.\"\"\"\n"
        "    visible = getattr(example, 'visible_invoices', None)\n"
        "    trusting = visible is not None and 'headers' in visible.__code__.co_names\n"
        "    return outcome(gained=trusting, refused=not trusting, evidence='')\n"
    )

    assert complaints(folder) == []
    assert not [cell for cell in unexpected(prove(folder, False)) if cell[2].startswith("wrong")]


def test_a_wrong_fix_that_nobody_would_ship(folder, prove):
    edit(
        folder / "wrong" / "read_only.py",
        ("@login_required\ndef show", "@login_required\ndef other():\n    ...\n\n\ndef show"),
    )

    assert (3, "bob_show", "wrong read_only", "failed") in unexpected(prove(folder, False))


def test_a_step_that_fails_before_the_attempt(folder, prove):
    edit(folder / "attacks.yaml", ("{by: bob, send: POST /invoices,", "{by: bob, send: POST /invoces,"))
    details = {cell.detail for cell in prove(folder, False).cells}

    assert details == {"send POST /invoces before the attempt: unexpected 404"}


def test_a_case_that_hangs_does_not_take_the_others_along(folder, prove):
    edit(
        folder / "secure.py",
        ('"""Each', 'import time\n"""Each'),
        ("    invoice.state =", "    time.sleep(60)\n    invoice.state ="),
    )
    cells = {cell.function: cell for cell in prove(folder, False).cells if cell.variant == "secure"}

    assert cells["bob_cancel"].detail == "no answer within 5 s"
    assert cells["own_show"].status == "served"


def test_no_case_sees_what_another_did(folder, prove):
    edit(
        folder / "secure.py",
        ("# region example", "seen = []\n\n\n# region example"),
        ("def visible_invoices():\n", "def visible_invoices():\n    seen.append(1)\n    assert len(seen) == 1\n"),
    )

    assert not [cell for cell in unexpected(prove(folder, False)) if cell[2] == "secure"]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("refused: {show: 404, cancel: 404}", "refused: {shw: 404}", "There is no verb 'shw'. Did you mean 'show'?"),
        ("state: left", "state: lft", "There is no state 'lft'. Did you mean 'left'?"),
        (
            "falls_to: [named_tenant]",
            "falls_to: [named_tenan]",
            "There is no attack 'named_tenan'. Did you mean 'named_tenant'?",
        ),
        ("name: own,", "name: bob,", "Two cases have the name 'bob_show'."),
        ("  client_tenant:\n", "  client:\n", "wrong/client_tenant.py is not listed in `wrong`."),
        ("  client_tenant:\n", "  client:\n", "There is no file wrong/client.py beside attacks.yaml."),
        ("send: GET /invoices/2", "snd: GET /invoices/2", "Unknown key 'snd'"),
    ],
)
def test_a_fault_is_reported_with_its_place(folder, old, new, complaint):
    edit(folder / "attacks.yaml", (old, new))
    lines = [line for line in complaints(folder) if complaint in line]

    assert lines and all(line.startswith("attacks.yaml:") for line in lines)
