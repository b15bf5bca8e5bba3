"""Attachments of projects, whose new columns a migration fills from what the rows belong to."""

from django.apps import apps as current_apps
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import connection, migrations, models
from django.db.migrations.state import ProjectState
from django.db.models import OuterRef, Q, Subquery
from django.http import HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.http import require_GET


class Project(models.Model):
    organization = models.ForeignKey("stage.Organization", models.CASCADE)


class Attachment(models.Model):
    name = models.CharField(max_length=200, primary_key=True)
    uploader = models.ForeignKey("stage.User", models.DO_NOTHING, db_constraint=False)
    project = models.ForeignKey(Project, models.DO_NOTHING, null=True, db_constraint=False)
    organization = models.ForeignKey("stage.Organization", models.CASCADE, null=True)  # new


class Member(models.Model):
    user = models.OneToOneField("stage.User", models.DO_NOTHING, primary_key=True, db_constraint=False)
    role = models.TextField()
    may_export = models.BooleanField(null=True)  # new


# region idiom
def fill(apps, schema_editor):
    Attachment, Project = apps.get_model("app", "Attachment"), apps.get_model("app", "Project")
    empty = Attachment.objects.filter(organization=None)
    project = Project.objects.filter(pk=OuterRef("project_id"))
    empty.update(organization_id=Subquery(project.values("organization_id")))
    if empty.exists():
        raise ValueError("attachments without a project")


# endregion


def fill_members(apps, schema_editor):
    apps.get_model("app", "Member").objects.filter(may_export=None).update(may_export=Q(role="admin"))


class Migration(migrations.Migration):
    operations = (migrations.RunPython(fill), migrations.RunPython(fill_members))


def attachments_of(user):
    if user.organization_id is None:
        raise PermissionDenied
    mine = Attachment.objects.filter(organization_id=user.organization_id)
    return list(mine.order_by("name").values_list("name", flat=True))


@require_GET
@login_required
def list_attachments(request):
    return JsonResponse(attachments_of(request.user), safe=False)


@require_GET
@login_required
def export_attachments(request):
    names = attachments_of(request.user)
    if not Member.objects.filter(user=request.user, may_export=True).exists():
        raise PermissionDenied
    return HttpResponse("\n".join(names), content_type="text/plain")


urlpatterns = [
    path("attachments", list_attachments),
    path("attachments/export", export_attachments),
]


def event_upgrade():
    try:
        with connection.schema_editor(atomic=True) as editor:
            Migration("0002_fill", "app").apply(ProjectState.from_apps(current_apps), editor)
    except ValueError as error:
        return {"stopped": type(error).__name__}
    return {"stopped": None}


def event_project(id, organization):
    Project.objects.create(id=id, organization_id=organization)


def event_attachment(name, uploader, project, organization=None):
    Attachment.objects.create(name=name, uploader_id=uploader, project_id=project, organization_id=organization)


def event_transferred(name, organization):
    Attachment.objects.filter(name=name).update(organization_id=organization)


def event_member(user, role):
    Member.objects.create(user_id=user, role=role)


def event_export_withdrawn(user):
    Member.objects.filter(user_id=user).update(may_export=False)


def state_attachments():
    return list(Attachment.objects.order_by("name").values_list("name", "organization_id"))


def state_members():
    return list(Member.objects.order_by("user_id").values_list("user_id", "may_export"))
