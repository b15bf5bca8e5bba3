"""Timesheets of organizations. One function checks membership first, and then the rule of each action."""

import json

from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.views import View


class Timesheet(models.Model):
    hours = models.IntegerField()
    created_by = models.ForeignKey("stage.User", models.DO_NOTHING, db_constraint=False)
    organization = models.ForeignKey("stage.Organization", models.CASCADE)


# region idiom
def load_timesheet(user, action, sheet_id):
    sheet = get_object_or_404(Timesheet, pk=sheet_id, organization_id=user.organization_id)
    is_creator = sheet.created_by_id == user.id
    if not {"edit": is_creator, "delete": is_creator or user.role == "admin"}[action]:
        raise PermissionDenied
    return sheet


# endregion


class Timesheets(LoginRequiredMixin, View):
    def post(self, request):
        user = request.user
        hours = json.loads(request.body)["hours"]
        sheet = Timesheet.objects.create(hours=hours, created_by=user, organization_id=user.organization_id)
        return JsonResponse({"id": sheet.id}, status=201)


class OneTimesheet(LoginRequiredMixin, View):
    def patch(self, request, sheet_id):
        sheet = load_timesheet(request.user, "edit", sheet_id)
        sheet.hours = json.loads(request.body)["hours"]
        sheet.save()
        return HttpResponse(status=204)

    def delete(self, request, sheet_id):
        load_timesheet(request.user, "delete", sheet_id).delete()
        return HttpResponse(status=204)


urlpatterns = [path("timesheets", Timesheets.as_view()), path("timesheets/<int:sheet_id>", OneTimesheet.as_view())]


def event_move_timesheet(timesheet_id, organization_id):
    """Move a timesheet to another organization."""
    Timesheet.objects.filter(pk=timesheet_id).update(organization_id=organization_id)


def state_timesheets():
    return list(Timesheet.objects.order_by("id").values_list("id", "hours"))
