"""Measure whether own patterns are found without training, and whether they change answers of packaged patterns.

``python -m tests.bench.own_patterns`` prints, for patterns without and with example questions, how many other questions
find them first, and in how many of a sample of packaged questions an own pattern is shown.
"""

import copy
import json
import random

from tmkb.knowledge import library, questions
from tmkb.knowledge.retrieval import index
from tmkb.schema import paths

# id → name, threat, check, keywords, eight questions of the authors, five questions of others
OWN = {
    "ACME-CLINIC-001": (
        "Ward Terminal Shows Records Of Other Wards",
        "A nurse reads records of patients of other wards, because the terminal trusts the ward id in the URL.",
        "Does each read of a patient record compare the ward of the patient with the shift of the nurse?",
        "ward terminal|patient record|shift roster|bed list",
        "list the patients of a ward on the terminal|show the medication chart of a bed|nurse opens the patient record "
        "from the bed list|add a discharge letter to a patient's chart|print wristbands for all beds of a ward|search "
        "patients by name on the ward terminal|vital signs endpoint for bedside monitors|hand over notes between shifts",
        "endpoint that returns the chart for a bed number|let the night nurse look up a patient by surname|bedside "
        "device posts temperature for a patient|page that shows who lies in which bed|export discharge letters of the "
        "ward as pdf",
    ),
    "ACME-TRADE-001": (
        "Trade Approved By Its Own Desk",
        "A trader approves a trade of the own desk, because the approval only checks the role approver.",
        "Does the approval refuse an approver of the desk that entered the trade?",
        "trade approval|desk|four eyes|limit breach",
        "approve a trade above the limit|four eyes check for order entry|release a blocked trade|button for the risk "
        "officer to confirm a trade|auto approve trades below ten thousand|bulk confirm the trades of the day|override "
        "a limit breach|desk head signs off a position",
        "add a confirm route for big orders of the desk|risk wants to release trades that hit the limit|second person "
        "must sign a position change|batch job that confirms yesterday's trades|POST /trades/:id/approve",
    ),
    "ACME-GRID-001": (
        "Meter Command Without Region Check",
        "An operator of one region switches off meters of another region, because commands are checked by role only.",
        "Does each meter command check that the meter lies in the operator's region?",
        "smart meter|switch off|region operator|head end",
        "send a disconnect command to a smart meter|remote firmware update for meters|change the tariff on a meter|"
        "operator console to ping meters|schedule a mass disconnect|read load profiles from the head end|replace a "
        "meter in the field|reconnect a customer after payment",
        "queue a switch-off for all meters of unpaid accounts|console action that resets a meter|push new tariff "
        "tables to devices|technician app swaps a meter serial|endpoint to fetch the load curve of one meter",
    ),
    "ACME-LAB-001": (
        "Sample Result Released By Its Analyst",
        "The analyst who measured a sample also releases the result, because the release checks only the qualification.",
        "Does the release refuse the person who entered the measurement?",
        "sample result|release|analyst|certificate of analysis",
        "release a sample result|sign a certificate of analysis|enter the measurement of a sample|reopen a released "
        "result|transfer results from the balance to the LIMS|approve an out of specification result|batch release for "
        "production|attach raw data to a sample",
        "button that publishes lab results to production|chemist corrects a measured value after release|generate the "
        "certificate pdf when results are final|import chromatogram results automatically|mark an OOS as accepted",
    ),
    "ACME-CAMPUS-001": (
        "Grade Changed After The Exam Board",
        "A lecturer changes a grade after the board has confirmed it, because the form checks only who teaches.",
        "Does each change of a grade check that the board has not confirmed the exam?",
        "grade|exam board|transcript of records|lecturer",
        "lecturer enters grades for an exam|upload a spreadsheet of grades|change a grade after a complaint|exam board "
        "confirms results|student downloads the transcript of records|teaching assistant corrects points|publish the "
        "results of an exam|withdraw a student from an exam",
        "form to edit the points of a student|import grades from excel|board sign-off for the winter exams|API that "
        "returns a student's marks|TA may fix typos in results",
    ),
}
SAMPLE, NEGATIVES, SEED = 600, 400, 1


def _pattern(like, id_):
    name, threat, check, keywords, *_ = OWN[id_]
    texts = {"threat": threat, "check": check, "fix": "Compare both in the query."}
    own = {"id": id_, "name": name, "description": threat, "agent_summary": texts, "category": "own", "steps": []}
    own |= {"triggers": {"keywords": keywords.split("|")}, "blind_spots": []}
    return copy.deepcopy(like) | own


def _index(patterns, asked):
    built = index.build(patterns, index.path([]), lambda ids: asked)
    return index.Index(json.loads(json.dumps(built)).__getitem__)


def _shown(searched, question):
    return [searched.patterns[number]["id"] for number in searched.search(question)[:3]]


def _loses(question, before, after):
    """Whether a relevant pattern is no longer among three."""
    return any(question.grades.get(id_, 0) >= 2 for id_ in {*before} - {*after})


def main():
    """Print one line for each number of example questions."""
    packaged = library.load(None).patterns
    before = _index(packaged, {})
    known = questions.read([paths.PATTERNS]).questions
    draw = random.Random(SEED)
    sample = draw.sample([each for each in known if each.grades], SAMPLE)
    negatives = draw.sample([each.context for each in known if each.is_query and not each.grades], NEGATIVES)
    refused = [question for question in negatives if not _shown(before, question)]
    own = [_pattern(packaged[0], id_) for id_ in OWN]
    print(f"{len(OWN)} own patterns, {sum(len(row[5].split('|')) for row in OWN.values())} questions about them")
    for count in (0, 4, 8):
        after = _index([*packaged, *own], {id_: row[4].split("|")[:count] for id_, row in OWN.items()})
        asked = [(id_, question) for id_, row in OWN.items() for question in row[5].split("|")]
        first = sum(_shown(after, question)[:1] == [id_] for id_, question in asked)
        three = sum(id_ in _shown(after, question) for id_, question in asked)
        foreign = sum(any(id_ in OWN for id_ in _shown(after, each.context)) for each in sample)
        lost = sum(_loses(each, _shown(before, each.context), _shown(after, each.context)) for each in sample)
        answered = sum(bool(_shown(after, question)) for question in refused)
        print(
            f"{count} example questions each: first {first}, among three {three}; shown for {foreign} of {SAMPLE} "
            f"packaged questions, in {lost} of which it replaces a relevant one, and for {answered} of {len(refused)} "
            "without an answer"
        )


if __name__ == "__main__":
    main()
