"""Tasks of projects. Each id in the body is looked up among the rows that the caller may use for that purpose."""

import json

from django.contrib.auth.decorators import login_required
from django.db import models, transaction
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from tmkb.authoring.stacks.django import User


class Project(models.Model):
    name = models.TextField()
    manager = models.ForeignKey("stage.User", models.CASCADE)
    organization = models.ForeignKey("stage.Organization", models.CASCADE)


class Task(models.Model):
    title = models.TextField()
    project = models.ForeignKey(Project, models.CASCADE)
    assignee = models.ForeignKey("stage.User", models.CASCADE)
    watchers = models.ManyToManyField("stage.User", related_name="watched")


# region idiom
def project_to_plan(user, project_id):
    own = Project.objects.filter(organization_id=user.organization_id, manager=user)
    return get_object_or_404(own, pk=project_id)


def colleague(user, user_id):
    return get_object_or_404(User, pk=user_id, organization_id=user.organization_id)


# endregion


def read_task(request):
    """Return the body; None if an id is not a number."""
    body = {"watcher_ids": [], **json.loads(request.body)}
    ids = [value for key, value in body.items() if key.endswith("_id")]
    return body if all(type(each) is int for each in [*ids, *body["watcher_ids"]]) else None


def shown(task):
    watchers = [user.name for user in task.watchers.order_by("id")]
    return {"id": task.id, "project": task.project.name, "assignee": task.assignee.name, "watchers": watchers}


@require_safe
@login_required
def list_projects(request):
    projects = Project.objects.filter(organization_id=request.user.organization_id)
    return JsonResponse(dict(projects.values_list("name", "id")))


@require_POST
@login_required
@transaction.atomic
def create_task(request):
    if (body := read_task(request)) is None:
        return HttpResponse(status=422)
    task = Task.objects.create(
        title=body["title"],
        project=project_to_plan(request.user, body["project_id"]),
        assignee=colleague(request.user, body["assignee_id"]),
    )
    task.watchers.set([colleague(request.user, user_id) for user_id in body["watcher_ids"]])
    return JsonResponse(shown(task), status=201)


@require_http_methods(["PATCH"])
@login_required
def move_task(request, task_id):
    task = get_object_or_404(Task, pk=task_id)
    project_to_plan(request.user, task.project_id)
    if (body := read_task(request)) is None:
        return HttpResponse(status=422)
    task.project = project_to_plan(request.user, body["project_id"])
    task.save()
    return JsonResponse(shown(task))


urlpatterns = [
    path("projects", list_projects),
    path("tasks", create_task),
    path("tasks/<int:task_id>", move_task),
]


def event_open(name, manager, organization):
    """Create a project and return its id."""
    return {"id": Project.objects.create(name=name, manager_id=manager, organization_id=organization).id}


def event_hand_over(project, manager):
    """Make somebody else the manager of a project."""
    Project.objects.filter(pk=project).update(manager=manager)


def event_sell(project):
    """Move a project to Globex; its manager stays."""
    Project.objects.filter(pk=project).update(organization=2)


def state_tasks():
    return [[task.title, *shown(task).values()] for task in Task.objects.order_by("id")]
