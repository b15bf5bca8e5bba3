"""Employees, whose profiles contain the fields that are listed by name for their reader."""

import json

from django.contrib.auth.decorators import login_required
from django.db import models
from django.http import JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.views.decorators.http import require_http_methods, require_safe


class Employee(models.Model):
    user = models.ForeignKey("stage.User", models.CASCADE)
    organization = models.ForeignKey("stage.Organization", models.CASCADE)
    name = models.TextField()
    title = models.TextField(default="Engineer")
    salary = models.IntegerField()
    notes = models.TextField()
    bank_account = models.TextField()  # for the payroll job only


def colleagues(user):
    return Employee.objects.filter(organization_id=user.organization_id).order_by("id")


# region idiom
def profile(user, employee):  # load the employee with a tenant condition
    fields = ["id", "name", "title"]
    if user.role == "hr":
        fields += ["salary", "notes"]
    elif employee.user_id == user.pk:
        fields += ["salary"]
    return {field: getattr(employee, field) for field in fields}


# endregion


@require_safe
@login_required
def list_employees(request):
    profiles = [profile(request.user, employee) for employee in colleagues(request.user)]
    return JsonResponse(profiles, safe=False)


@require_safe
@login_required
def show_employee(request, employee_id):
    return JsonResponse(profile(request.user, get_object_or_404(colleagues(request.user), pk=employee_id)))


@require_http_methods(["PATCH"])
@login_required
def set_own_title(request):
    employee = get_object_or_404(colleagues(request.user), user=request.user)
    employee.title = json.loads(request.body)["title"]
    employee.save()
    return JsonResponse(profile(request.user, employee))


urlpatterns = [
    path("employees", list_employees),
    path("employees/me", set_own_title),
    path("employees/<int:employee_id>", show_employee),
]


def event_hire(**values):
    Employee.objects.create(**values)


def state_titles():
    return list(Employee.objects.order_by("id").values_list("title", flat=True))
