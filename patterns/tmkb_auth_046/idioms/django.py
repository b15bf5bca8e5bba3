"""Documents, and a policy service. Only a known rule and a known role give permission, and no failure does."""

import logging

from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path
from django.utils.deprecation import MiddlewareMixin
from django.views import View

from tmkb.authoring.stacks.django import Document

logger = logging.getLogger(__name__)


class Rule(models.Model):
    action = models.TextField(primary_key=True)
    least_role = models.JSONField()


class Policy:
    """The client of the policy service."""

    error = None

    def least_role(self, action):
        """Return the least role that may perform ``action``; None without a rule."""
        if self.error is not None:
            raise self.error
        rule = Rule.objects.filter(pk=action).first()
        return rule and rule.least_role


policy = Policy()


# region idiom
def allowed(user, action):
    ranks = {"viewer": 1, "member": 2, "admin": 3}
    try:
        return ranks[user.role] >= ranks[policy.least_role(action)]
    except Exception:
        logger.exception("No permission for %s to %s", user.role, action)
        return False


# endregion


class DemandPermission(MiddlewareMixin):
    """Refuse actions without permission. Anonymous users are refused by the views."""

    def process_view(self, request, view, args, kwargs):
        method = "GET" if request.method == "HEAD" else request.method
        asks = method != "OPTIONS" and request.user.is_authenticated
        if asks and not allowed(request.user, f"{method} {request.resolver_match.view_name}"):
            raise PermissionDenied


MIDDLEWARE = ["app.DemandPermission"]


def own_document(user, document_id):
    return get_object_or_404(Document, pk=document_id, organization_id=user.organization_id)


class DocumentView(LoginRequiredMixin, View):
    def get(self, request, document_id):
        return JsonResponse({"title": own_document(request.user, document_id).title})

    def delete(self, request, document_id):
        own_document(request.user, document_id).delete()
        return HttpResponse(status=204)


class PublishView(LoginRequiredMixin, View):
    def post(self, request, document_id):
        document = own_document(request.user, document_id)
        document.state = "published"
        document.save()
        return HttpResponse(status=204)


class HistoryView(LoginRequiredMixin, View):
    def get(self, request, document_id):
        return JsonResponse({"history": [f"created {own_document(request.user, document_id).title}"]})


urlpatterns = [
    path("documents/<int:document_id>", DocumentView.as_view(), name="documents.document"),
    path("documents/<int:document_id>/publish", PublishView.as_view(), name="documents.publish"),
    path("documents/<int:document_id>/history", HistoryView.as_view(), name="documents.history"),
]


def event_rule(action, least_role):
    Rule.objects.update_or_create(action=action, defaults={"least_role": least_role})


def event_fail(error):
    policy.error = {"timeout": TimeoutError(), "connection": ConnectionError(), "response": ValueError()}[error]


def event_unpublish():
    Document.objects.filter(pk=1).update(state="new")


def state_documents():
    return list(Document.objects.order_by("id").values_list("title", "state"))
