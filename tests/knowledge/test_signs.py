"""Signs of what a change does, in several languages."""

import time

import pytest

from tmkb.knowledge.retrieval import index, signs
from tmkb.schema import paths

BY_KEY = {
    "flask": """
+@bp.get("/labs/<int:lab_id>/pdf")
+@login_required
+def lab_pdf(lab_id):
+    lab = db.session.get(Lab, lab_id)
+    if lab is None:
+        abort(404)
+    return send_file(render(lab, logo=current_user.logo))""",
    "next": """
+export async function PUT(req: Request, { params }: Context) {
+  const session = await auth();
+  const { diveId } = await params;
+  const dive = await prisma.dive.findUnique({ where: { id: diveId } });
+  return Response.json(dive);
+}""",
    "go": """
+func (h *Handler) sheet(w http.ResponseWriter, r *http.Request) {
+\tcrew := auth.CrewFrom(r.Context())
+\tsheet, err := h.store.SheetByTrip(r.Context(), tripID)
+\th.log.Info("sheet read", "crew", crew.ID)
+\twriteJSON(w, sheet)
+}""",
    "spring": """
+    @PutMapping("/{lotId}")
+    public LotSummary weigh(@AuthenticationPrincipal Grower grower, @PathVariable long lotId) {
+        Lot lot = lots.findById(lotId).orElseThrow(NotFound::new);
+        lot.setWeighedBy(grower.id());
+        return LotSummary.of(lot);
+    }""",
}
OWN = {
    "flask": ("db.session.get(Lab, lab_id)", "Lab.query.filter_by(id=lab_id, owner=current_user).first_or_404()"),
    "next": ("{ id: diveId }", "{ id: diveId, diverId: session.user.id }"),
    "go": ("r.Context(), tripID", "r.Context(), tripID, crew.StationID"),
    "spring": ("findById(lotId)", "findByIdAndGrower(lotId, grower.id())"),
}


@pytest.fixture(scope="module")
def rules():
    return signs.packaged()


@pytest.fixture(scope="module")
def of(rules):
    found = signs.Signs(rules)
    return lambda text: found.of(f"app/code\n{text.strip()}")


@pytest.mark.parametrize("stack", BY_KEY)
def test_a_record_that_is_read_by_its_key_alone(of, stack):
    own = BY_KEY[stack].replace(*OWN[stack])

    assert "read_by_key" in of(BY_KEY[stack])
    assert "read_by_key" not in of(own) and "read_own" in of(own)


@pytest.mark.parametrize(
    ("check", "is_bare"),
    [
        ("if lab.owner_id != current_user.id: abort(404)", False),
        ("authorize(lab)", False),
        ("audit.info(lab, current_user)", True),
        ("lab.viewed_by = current_user.id", True),
    ],
)
def test_a_check_after_the_read(of, check, is_bare):
    code = f"+def show(lab_id):\n+    lab = Lab.query.get_or_404(lab_id)\n+    {check}\n+    return lab.json"

    assert ("read_by_key" in of(code)) is is_bare


def test_a_check_of_only_the_first_record(of):
    code = "+def close(ids):\n+  plots = Plot.where(id: ids)\n+  authorize plots.first, :close?\n+  plots.update_all(open: false)"

    assert "checked_first" in of(code)
    assert "checked_first" not in of(code.replace("plots.first", "plots"))


def test_a_removed_check(of):
    code = " lab = get(lab_id)\n-if lab.owner_id != current_user.id:\n-    abort(403)\n return lab"

    assert of(code) >= {"fewer_check", "fewer_caller"}


def test_what_the_change_does_not_add_has_no_sign(of):
    assert "read_by_key" not in of(BY_KEY["next"].replace("\n+", "\n "))


@pytest.mark.parametrize(
    ("sign", "code", "right"),
    [
        ("open_policy", "create policy p on notes\n+  using (true);", "+  using (owner = auth.uid());"),
        ("setting_of_connection", "+set_config('app.org', org, false)", "+set_config('app.org', org, true)"),
        ("whole_body", "+Object.assign(horse, req.body)", "+horse.name = req.body.name"),
        ("whole_body", "+user.update!(params.permit!)", "+user.update!(params.permit(:name))"),
        ("without_scope", "+Plot.unscoped.find(id)", "+Plot.find(id)"),
        ("cache_for_all", '+key = f"report:{day}"', '+key = f"report:{current_user.id}:{day}"'),
    ],
)
def test_forms_of_a_statement(of, sign, code, right):
    assert sign in of(code)
    assert sign not in of(right)


def test_a_variable_of_another_function_is_not_trusted(of):
    other = " def mine(pk):\n     lab = current_user.labs.get(pk)\n     return lab\n"

    assert "read_by_key" in of(f"{other}+def any(pk):\n+    lab = Lab.objects.get(pk=pk)\n+    return lab")


def test_words_count_near_changes():
    text = "app/x.py\n@@ -1,9 +1,9 @@\n far\n far\n one\n two\n+new\n-old\n one\n two\n far"

    assert signs.nearby(text) == "app/x.py\n@@ -1,9 +1,9 @@\n one\n two\n+new\n-old\n one\n two"
    assert signs.nearby("+++ b/x\n+new") == "+++ b/x\n+new"
    assert signs.nearby("def f():\n    return 1") == "def f():\n    return 1"


def test_weights_are_added(rules):
    weighed = signs.Signs({**rules, "weights": {"read_by_key": 1.5, "whole_body": 2.0, "other": 4.0}})

    assert weighed.weight(BY_KEY["next"]) == 1.5


HOSTILE = {
    "a long word": "+" + "a_" * 10_000,
    "spaces after a parameter": "\n+".join(["+def f(", *["ab:" + " " * 390 + "x"] * 48]),
    "spaces after a type": "\n+".join(["+a:" + " " * 395 + "x"] * 48),
    "many variables of the caller": "\n+".join(["+a", *[f"v{n} = current_user.x" for n in range(800)]]),
    "many records": "\n+".join(["+a", *[f"v{n} = Order.objects.get(id=k)" for n in range(600)]]),
    "names of a finder": "+" + "\n+".join(["findByAndA" * 39] * 48),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_no_change_takes_much_longer_than_others_of_its_size(of, case):
    def seconds(text):
        start = time.process_time()
        of(text)
        return time.process_time() - start

    ordinary = "+" + "\n+".join(["total = order.total(price, tax)"] * 600)
    assert seconds(HOSTILE[case]) < 20 * seconds(ordinary)


def test_the_model_of_reviews_has_the_packaged_rules():
    rules = index.read(index.path([paths.PATTERNS], index.REVIEW_FILE)).facts["calibration"]["signs"]

    assert {key: rules[key] for key in ("words", "forms")} == signs.packaged()
