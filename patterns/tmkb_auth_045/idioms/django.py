"""The API key and the members of an organization. The first base of each class-based view is the guard."""

import json

from django.contrib.auth.mixins import UserPassesTestMixin
from django.db import models
from django.http import HttpResponse, JsonResponse
from django.urls import path
from django.views import View

from tmkb.authoring.stacks.django import User


class Settings(models.Model):
    organization = models.OneToOneField("stage.Organization", models.CASCADE, primary_key=True)
    api_key = models.TextField(null=True)


# region idiom
class AdminRequiredMixin(UserPassesTestMixin):
    def test_func(self):
        user = self.request.user
        return user.is_authenticated and user.organization_id is not None and user.role == "admin"


class KeyView(AdminRequiredMixin, View):  # the mixin is first, so it guards every method
    def get(self, request):
        return JsonResponse({"key": request.user.organization.settings.api_key})

    # endregion

    def put(self, request):
        return self.store(request.user, json.loads(request.body)["api_key"])

    def delete(self, request):
        return self.store(request.user, None)

    def store(self, user, api_key):
        Settings.objects.filter(organization_id=user.organization_id).update(api_key=api_key)
        return HttpResponse(status=204)


class MembersView(AdminRequiredMixin, View):
    def get(self, request):
        return JsonResponse([f"{user.name} is {user.role}" for user in members(request.user)], safe=False)


class ReportView(AdminRequiredMixin, View):
    def get(self, request):
        lines = [f"{user.name},{user.role}" for user in members(request.user)]
        return HttpResponse("\n".join(lines), content_type="text/csv")


def members(user):
    return User.objects.filter(organization_id=user.organization_id).order_by("id")


urlpatterns = [
    path("key", KeyView.as_view()),
    path("members", MembersView.as_view()),
    path("members.csv", ReportView.as_view()),
]


def answer_options(get_response):
    """Answer OPTIONS instead of a view, as middleware for CORS does."""

    def middleware(request):
        return HttpResponse() if request.method == "OPTIONS" else get_response(request)

    return middleware


MIDDLEWARE = ["app.answer_options"]


def event_begin():
    Settings.objects.create(organization_id=1, api_key="acme-4200")
    Settings.objects.create(organization_id=2, api_key="globex-31")


def state_key():
    return Settings.objects.get(organization_id=1).api_key
