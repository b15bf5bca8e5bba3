"""Projects of organizations. Other tenants' projects get the response of absent ones; names are unique in a tenant."""

import json

from django.contrib.auth.decorators import login_required
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, models, transaction
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.views import View
from django.views.decorators.http import require_GET, require_POST


# region idiom
class Project(models.Model):
    organization = models.ForeignKey("stage.Organization", models.CASCADE)
    slug = models.SlugField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["organization", "slug"], name="slug_in_organization"),)


def load_project(user, project_id):  # also for ids in the body
    return get_object_or_404(Project, pk=project_id, organization=user.organization_id)


# endregion


class OneProject(LoginRequiredMixin, View):
    def get(self, request, project_id):
        return JsonResponse({"slug": load_project(request.user, project_id).slug})

    def delete(self, request, project_id):
        project = load_project(request.user, project_id)
        if request.user.role != "admin":
            raise PermissionDenied("Only administrators delete projects.")
        project.delete()
        return HttpResponse(status=204)


@require_GET
@login_required
def is_free(request):
    taken = Project.objects.filter(slug=request.GET.get("slug"), organization=request.user.organization_id)
    return JsonResponse({"free": not taken.exists()})


@require_POST
@login_required
def create_project(request):
    values, tenant_id = json.loads(request.body), request.user.organization_id
    if not isinstance(values.get("slug"), str) or tenant_id is None:
        return JsonResponse({"error": "A project needs a name and an organization."}, status=422)
    if "copy_of" in values:
        load_project(request.user, values["copy_of"])
    try:
        with transaction.atomic():
            Project.objects.create(slug=values["slug"], organization_id=tenant_id)
    except IntegrityError:
        return JsonResponse({"error": "This name is taken."}, status=409)
    return JsonResponse({"slug": values["slug"]}, status=201)


urlpatterns = [
    path("projects", create_project),
    path("projects/free", is_free),
    path("projects/<int:project_id>", OneProject.as_view()),
]


def handler403(request, exception):
    return JsonResponse({"error": str(exception)}, status=403)


def handler404(request, exception):
    return JsonResponse({"error": "No such project."}, status=404)


def event_begin(slug, organization_id):
    Project.objects.create(slug=slug, organization_id=organization_id)


def state_projects():
    return list(Project.objects.order_by("id").values_list("slug", "organization_id"))
