"""Tasks with what they refer to. Every related record is looked up among those that are visible to the user."""

import json

from django.contrib.auth.decorators import login_required
from django.db import models
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.http import require_GET


class ProjectQuerySet(models.QuerySet):
    def visible_to(self, user):
        projects = self.filter(organization_id=user.organization_id)
        return projects if user.role == "admin" else projects.filter(confidential=False)


class TaskQuerySet(models.QuerySet):
    def visible_to(self, user):
        tasks = self.filter(project__organization_id=user.organization_id)
        return tasks if user.role == "admin" else tasks.filter(assignee=user)


class BudgetQuerySet(models.QuerySet):
    def visible_to(self, user):
        budgets = self.filter(project__organization_id=user.organization_id)
        return budgets if user.role == "admin" else budgets.none()


class Project(models.Model):
    organization = models.ForeignKey("stage.Organization", models.CASCADE)
    name = models.TextField()
    confidential = models.BooleanField(default=False)

    objects = ProjectQuerySet.as_manager()


class Task(models.Model):
    project = models.ForeignKey(Project, models.CASCADE)
    assignee = models.ForeignKey("stage.User", models.CASCADE)
    blocker = models.ForeignKey("self", models.SET_NULL, null=True)
    title = models.TextField()

    objects = TaskQuerySet.as_manager()


class Budget(models.Model):
    project = models.OneToOneField(Project, models.CASCADE)
    total = models.IntegerField()

    objects = BudgetQuerySet.as_manager()


# region idiom
def project_of(user, task, expand):
    project = Project.objects.visible_to(user).filter(pk=task.project_id).first()
    return project and project_json(user, project, expand)


def tasks_of(user, project, expand):
    tasks = Task.objects.visible_to(user).filter(project=project).order_by("title")
    return [task_json(user, task, expand) for task in tasks]


# endregion


def blocker_of(user, task, expand):
    blocker = Task.objects.visible_to(user).filter(pk=task.blocker_id).first()
    return blocker and task_json(user, blocker, expand)


def budget_of(user, project, expand):
    budget = Budget.objects.visible_to(user).filter(project=project).first()
    return budget and {"total": budget.total}


def task_json(user, task, expand):
    return {"title": task.title} | expanded(user, task, expand, {"project": project_of, "blocker": blocker_of})


def project_json(user, project, expand):
    return {"name": project.name} | expanded(user, project, expand, {"tasks": tasks_of, "budget": budget_of})


def expanded(user, record, expand, relations):
    name, _, rest = expand.partition(".")
    return {name: relations[name](user, record, rest)} if name in relations else {}


@method_decorator(login_required, name="dispatch")
class OneTask(View):
    def dispatch(self, request, task_id):
        self.expand = request.GET.get("expand", "")
        if self.expand.count(".") > 3:
            return HttpResponse(status=400)
        return super().dispatch(request, get_object_or_404(Task.objects.visible_to(request.user), pk=task_id))

    def get(self, request, task):
        return JsonResponse(task_json(request.user, task, self.expand))

    def patch(self, request, task):
        task.title = json.loads(request.body)["title"]
        task.save()
        return JsonResponse(task_json(request.user, task, self.expand))


@require_GET
@login_required
def show_budget(request, budget_id):
    budget = get_object_or_404(Budget.objects.visible_to(request.user), pk=budget_id)
    return JsonResponse({"total": budget.total})


urlpatterns = [
    path("tasks/<int:task_id>", OneTask.as_view()),
    path("budgets/<int:budget_id>", show_budget),
]


def event_plan():
    """Plan projects of Acme and Globex; a task of Bob is blocked by one of Globex."""
    ALICE, BOB, MALLORY = 1, 2, 3
    lyon = Project.objects.create(organization_id=1, name="Relocation to Lyon")
    merger = Project.objects.create(organization_id=1, name="Acquisition of Initech", confidential=True)
    globex = Project.objects.create(organization_id=2, name="Globex launch")
    Budget.objects.create(project=lyon, total=900_000)
    Budget.objects.create(project=globex, total=70_007)
    press = Task.objects.create(title="Draft the press release", assignee_id=MALLORY, project=globex)
    movers = Task.objects.create(title="Book the movers", assignee_id=BOB, project=lyon, blocker=press)
    layoffs = Task.objects.create(title="Choose who is let go", assignee_id=ALICE, project=lyon)
    room = Task.objects.create(title="Book a room", assignee_id=BOB, project=merger)
    return {"movers": movers.id, "layoffs": layoffs.id, "room": room.id, "press": press.id, "lyon": lyon.id}


def event_sell(project):
    """Move a project of Acme to Globex."""
    Project.objects.filter(pk=project).update(organization_id=2)


def event_path(levels):
    """Return a path that goes down to the tasks of a project and up again."""
    return ".".join(["project.tasks"] * levels)


def state_tasks():
    return list(Task.objects.order_by("id").values_list("title", "assignee_id"))
