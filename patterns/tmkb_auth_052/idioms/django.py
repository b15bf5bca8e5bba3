"""Projects of organizations, which a header names. The user's membership in it decides."""

from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import models
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.utils.decorators import method_decorator
from django.views import View

from tmkb.authoring.stacks.django import User


class Membership(models.Model):
    user = models.ForeignKey("stage.User", models.CASCADE)
    organization = models.ForeignKey("stage.Organization", models.CASCADE)
    role = models.TextField()

    class Meta:
        unique_together = ("user", "organization")


class Project(models.Model):
    name = models.TextField()
    organization = models.ForeignKey("stage.Organization", models.CASCADE)


# region idiom
def membership_or_404(request):
    org = request.headers.get("X-Org-Id", str(request.user.organization_id))
    if not org.isdecimal() or len(org) > 9:
        raise BadRequest
    mine = Membership.objects.filter(user=request.user)
    return get_object_or_404(mine, organization_id=int(org))


# endregion


class Projects(View):
    @method_decorator(login_required)
    def get(self, request):
        names = Project.objects.filter(organization_id=membership_or_404(request).organization_id)
        return JsonResponse(list(names.order_by("pk").values_list("name", flat=True)), safe=False)


class OneProject(View):
    @method_decorator(login_required)
    def delete(self, request, project_id):
        membership = membership_or_404(request)
        if membership.role != "admin":
            raise PermissionDenied
        get_object_or_404(Project, pk=project_id, organization_id=membership.organization_id).delete()
        return HttpResponse(status=204)


urlpatterns = [
    path("projects", Projects.as_view()),
    path("projects/<int:project_id>", OneProject.as_view()),
]


def event_grant(user, organization_id, role):
    of = {"user": User.objects.get(name=user), "organization_id": organization_id}
    Membership.objects.update_or_create(**of, defaults={"role": role})


def event_revoke(user, organization_id):
    Membership.objects.filter(user__name=user, organization_id=organization_id).delete()


def event_add_project(**values):
    return Project.objects.create(**values).id


def state_projects():
    return list(Project.objects.order_by("pk").values_list("name", flat=True))
