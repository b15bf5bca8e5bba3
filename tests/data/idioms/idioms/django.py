"""An application that uses what the stage offers."""

import json
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db import models
from django.http import HttpResponse, JsonResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_GET, require_safe

from tmkb.authoring.stacks.stage import enqueue

started = []


class Entry(models.Model):
    amount = models.IntegerField()


def total():
    return Entry.objects.aggregate(total=models.Sum("amount"))["total"]


# region idiom
@require_safe
@login_required
def me(request):
    user, cookie = request.user, request.COOKIES.get("flavor")
    return JsonResponse({"role": user.role, "organization": user.organization_id, "cookie": cookie, "total": total()})


# endregion


def cookie(request):
    response = HttpResponse()
    response.set_cookie("flavor", "sweet")
    return response


@login_required
def add(request):
    Entry.objects.create(amount=json.loads(request.body)["amount"])
    return HttpResponse(status=204)


def start(request):
    started.append(timezone.now())
    return HttpResponse()


def late(request):
    return JsonResponse({"late": bool(started) and timezone.now() - started[0] > timedelta(minutes=59)})


def job(request):
    enqueue(event_add, json.loads(request.body)["amount"])
    return HttpResponse()


@require_GET
def crash(request):
    raise LookupError("nothing here")


urlpatterns = [
    path("me", me),
    path("cookie", cookie),
    path("form", lambda request: HttpResponse(request.POST["text"])),
    path("file", lambda request: HttpResponse(request.FILES["file"].read())),
    path("text", lambda request: HttpResponse(request.body)),
    path("json", add),
    path("start", start),
    path("late", late),
    path("greeting", lambda request: HttpResponse(f"{settings.GREETING} {request.headers['X-Name']}")),
    path("job", job),
    path("crash", crash),
]


def event_add(amount):
    Entry.objects.create(amount=int(amount))
    return total()


def state_total():
    return total()
