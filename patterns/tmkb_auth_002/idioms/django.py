"""Notes on customers, whose list and page use the same query."""

import json

from django.contrib.auth.decorators import login_required
from django.db import models
from django.db.models import Q
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.http import require_http_methods


# region idiom
class NoteQuerySet(models.QuerySet):
    def visible_to(self, user):
        allowed = Q(private=False) | Q(author=user)
        return self.filter(allowed, organization_id=user.organization_id, deleted=False)


@login_required
def show_note(request, note_id):
    note = get_object_or_404(Note.objects.visible_to(request.user), pk=note_id)
    return JsonResponse({"customer": note.customer, "text": note.text})


# endregion


class Note(models.Model):
    customer = models.TextField()
    text = models.TextField()
    private = models.BooleanField()
    deleted = models.BooleanField(default=False)
    author = models.ForeignKey("stage.User", models.CASCADE)
    organization = models.ForeignKey("stage.Organization", models.CASCADE)

    objects = NoteQuerySet.as_manager()


@method_decorator(login_required, name="dispatch")
class Notes(View):
    def get(self, request):
        notes = Note.objects.visible_to(request.user)
        short = [{"id": note.id, "customer": note.customer, "text": note.text[:40]} for note in notes]
        return JsonResponse(short, safe=False)

    def post(self, request):
        user = request.user
        if user.organization_id is None:
            return HttpResponse(status=403)
        body = json.loads(request.body)
        values = {field: body[field] for field in ("customer", "text", "private")}
        note = Note.objects.create(**values, author=user, organization_id=user.organization_id)
        return JsonResponse({"id": note.id}, status=201)


def own_note_or_404(user, note_id):
    return get_object_or_404(Note.objects.visible_to(user), pk=note_id, author=user)


@login_required
def delete_note(request, note_id):
    note = own_note_or_404(request.user, note_id)
    note.deleted = True
    note.save()
    return HttpResponse(status=204)


@require_http_methods(["GET", "HEAD", "DELETE"])
def one_note(request, note_id):
    return delete_note(request, note_id) if request.method == "DELETE" else show_note(request, note_id)


@require_http_methods(["PUT"])
@login_required
def make_private(request, note_id):
    note = own_note_or_404(request.user, note_id)
    note.private = True
    note.save()
    return HttpResponse(status=204)


urlpatterns = [
    path("notes", Notes.as_view()),
    path("notes/<int:note_id>", one_note),
    path("notes/<int:note_id>/private", make_private),
]
