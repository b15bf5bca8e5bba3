"""Profiles, roles and documents, each written through a form that lists the fields."""

import json

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.forms import modelform_factory
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.views.decorators.http import require_http_methods, require_POST

from tmkb.authoring.stacks.django import Document, User


def json_only(get_response):
    def middleware(request):
        return get_response(request) if request.content_type == "application/json" else HttpResponse(status=415)

    return middleware


MIDDLEWARE = ["app.json_only"]
require_PATCH = require_http_methods(["PATCH"])

# region idiom
ProfileForm = modelform_factory(User, fields=["name"])


@login_required
def update_me(request):
    form = ProfileForm(json.loads(request.body), instance=request.user)
    if not form.is_valid():
        return JsonResponse(form.errors, status=422)
    form.save()
    return HttpResponse(status=204)


# endregion

RoleForm = modelform_factory(User, fields=["role"])
DocumentForm = modelform_factory(Document, fields=["title"])


@require_PATCH
@login_required
def update_member(request, user_id):
    if request.user.organization_id is None:
        return HttpResponse(status=404)
    member = get_object_or_404(User, pk=user_id, organization_id=request.user.organization_id)
    if request.user.role != "admin":
        raise PermissionDenied
    return saved(RoleForm(json.loads(request.body), instance=member))


@require_POST
@login_required
def create_document(request):
    user = request.user
    if user.organization_id is None:
        raise PermissionDenied
    document = Document(owner=user, organization_id=user.organization_id)
    response = saved(DocumentForm(json.loads(request.body), instance=document))
    return JsonResponse({"id": document.id}, status=201) if document.id else response


@require_PATCH
@login_required
def update_document(request, document_id):
    document = get_object_or_404(Document, pk=document_id, organization_id=request.user.organization_id)
    return saved(DocumentForm(json.loads(request.body), instance=document))


def saved(form):
    if not form.is_valid():
        return JsonResponse(form.errors, status=422)
    form.save()
    return HttpResponse(status=204)


urlpatterns = [
    path("me", require_PATCH(update_me)),
    path("members/<int:user_id>", update_member),
    path("documents", create_document),
    path("documents/<int:document_id>", update_document),
]


def state_users():
    return list(User.objects.order_by("id").values_list("id", "name", "role", "organization_id"))


def state_documents():
    columns = ["title", "owner_id", "organization_id", "state"]
    return list(Document.objects.order_by(*columns).values_list(*columns).distinct())
