"""A model of what one connection sends: the reference that `tests/protocol/test_request_lifecycle.py` compares with.

The model shares no code with the server. It knows three tools: `instant` returns at once, `slow` pauses, `asks` sends
two questions and then pauses. A batch is read as a whole before the first of its calls starts.
"""

PAUSE, KEYS = 10, ("a", "b")
RUNNING, TASKS, ANSWER_SECONDS, TASK_SECONDS = 2, 2, 100, 1000


class Call:
    """A tool call, from its request to its response or, as a task, to its outcome."""

    def __init__(self, id_, kind, place, version):
        self.id, self.kind, self.place, self.version = id_, kind, place, version
        self.due = self.text = self.status = self.begun = None
        self.open = {}  # key of an open question → id of the server's request, None for a task


class Batch:
    """The responses to an array of messages; None where a response is missing."""

    def __init__(self):
        self.responses, self.ids, self.read = [], [], False


class Model:
    def __init__(self, in_result):
        self.in_result = in_result  # whether the revision asks in results
        self.now, self.version, self.last_question = 0, 1, 0
        self.in_flight = {}  # id of a request → its Call, "listen", or None where the batch is not answered yet
        self.calls, self.tasks, self.questions, self.sent = [], [], {}, []

    def receive(self, elements, batch=None):
        """Handle messages that come together: a single one, or all of a batch."""
        actions = [self.read(batch, *element) for element in elements]
        for id_ in batch.ids if batch else ():
            self.in_flight.setdefault(id_, None)
        for action in filter(None, actions):
            action()
        if batch:
            batch.read = True
            self.flush(batch)

    def read(self, batch, method, id_, *rest):
        if method == "cancel":
            return self.cancel(id_)
        if method == "answer":
            return self.deliver(id_, *rest)
        place = (batch, len(batch.responses)) if batch else None
        if batch:
            batch.responses.append(None)
        if id_ in self.in_flight:
            return self.respond(place, ("error", id_, "id_in_use"))
        if batch:
            batch.ids.append(id_)
        if method == "call":
            call = self.in_flight[id_] = Call(id_, rest[0], place, self.version)
            return lambda: self.begin(call, *rest[1:])
        if method == "listen":
            self.in_flight[id_] = method
            return self.sent.append(("acknowledged", id_))
        return self.respond(place, ("result", id_, "") if method == "ping" else self.task(id_, *rest))

    def cancel(self, id_):
        call = self.in_flight.get(id_)
        if call == "listen":
            del self.in_flight[id_]
        return (lambda: call in self.calls and self.stop(call)) if isinstance(call, Call) else None

    def deliver(self, question, outcome):
        call, key = self.questions.pop(question, (None, None))
        return lambda: call in self.calls and call.open.get(key) == question and self.answer(call, key, outcome)

    def begin(self, call, follows=False, answers=None, valid=True):  # noqa: PLR0911, PLR0912
        if follows and call.kind != "instant":
            self.forget_tasks()
            over = [task for task in self.tasks if task not in self.calls]
            if len(self.tasks) >= TASKS and not over:
                return self.end(call, ("error", call.id, "too_many_tasks"))
            self.tasks = [task for task in self.tasks if len(self.tasks) < TASKS or task is not over[0]] + [call]
            self.end(call, ("task", call.id, "working"))
            call.status, call.begun = "working", self.now
        elif not valid:
            return self.end(call, ("error", call.id, "request_state_invalid"))
        elif call.kind != "instant" and sum(not each.status for each in self.calls) >= RUNNING:
            return self.end(call, ("error", call.id, "too_many_running"))
        if call.kind == "asks" and self.in_result and not call.status:
            if "bad" in (answers or {}).values():
                return self.end(call, ("error", call.id, "invalid_params"))
            if missing := tuple(key for key in KEYS if key not in (answers or {})):
                return self.end(call, ("input_required", call.id, missing))
        elif call.kind == "asks":
            self.calls.append(call)
            return self.ask(call)
        if call.kind == "instant":
            return self.end(call, ("result", call.id, f"instant {call.version}"))
        self.calls.append(call)
        return self.pause(call, "answered" if call.kind == "asks" else "slow")

    def ask(self, call):
        call.open = dict.fromkeys(KEYS)
        call.due = self.now + (TASK_SECONDS if call.status else ANSWER_SECONDS)
        for key in () if call.status else KEYS:
            self.last_question += 1
            call.open[key] = self.last_question
            self.questions[self.last_question] = call, key
            self.sent.append(("question", self.last_question))
        call.status = call.status and "input_required"

    def answer(self, call, key, outcome):
        if outcome != "good":
            return self.pause(call, {"bad": "client_answer_invalid", "error": "client_refused"}[outcome])
        del call.open[key]
        return None if call.open else self.pause(call, "answered")

    def pause(self, call, text):
        self.withdraw(call)
        call.due, call.text, call.status = self.now + PAUSE, f"{text} {call.version}", call.status and "working"

    def withdraw(self, call):
        self.sent += [("cancelled", open_) for open_ in call.open.values() if self.questions.pop(open_, None)]
        call.open = {}

    def advance(self, seconds):
        self.now += seconds
        for call in [call for call in self.calls if call.due <= self.now]:
            if call.open:
                self.pause(call, f"client_silent {TASK_SECONDS if call.status else ANSWER_SECONDS}")
            else:
                self.calls.remove(call)
                self.end(call, ("result", call.id, call.text), "completed")

    def stop(self, call):
        self.withdraw(call)
        self.calls.remove(call)
        self.end(call, None, "cancelled")

    def end(self, call, response, status=None):
        """Respond to a call (None: not at all) and free its id; a task only changes its status."""
        if call.status:
            call.status = status
            return
        self.in_flight[call.id] = None
        if not call.place:
            del self.in_flight[call.id]
        self.respond(call.place, response)

    def end_of_input(self):
        for call in [call for call in self.calls if call.open]:
            self.stop(call)
        for id_ in [id_ for id_, call in self.in_flight.items() if call == "listen"]:
            del self.in_flight[id_]
            self.sent += [("result", id_, ""), ("cancelled", id_)]

    def forget_tasks(self):
        self.tasks = [task for task in self.tasks if task in self.calls or task.begun >= self.now - TASK_SECONDS]

    def task(self, id_, verb, task, answers=None):
        self.forget_tasks()
        answers = {key: outcome for key, outcome in (answers or {}).items() if key in task.open}
        if task not in self.tasks or "bad" in answers.values():
            return "error", id_, "invalid_params" if task in self.tasks else "unknown_task"
        if verb == "get":
            return "status", id_, task.status, tuple(task.open), task.text if task.status == "completed" else None
        if verb == "cancel" and task in self.calls:
            self.stop(task)
        for key in answers:
            self.answer(task, key, "good")
        return "result", id_, ""

    def respond(self, place, response):
        if place is None:
            self.sent += [response] if response else []
        else:
            place[0].responses[place[1]] = response or "none"
            self.flush(place[0])

    def flush(self, batch):
        if batch.read and None not in batch.responses:
            for id_ in batch.ids:
                self.in_flight.pop(id_, None)
            batch.ids, given = [], tuple(each for each in batch.responses if each != "none")
            self.sent += [("batch", *given)] if given else []
