"""The management area of organizations, whose guard refuses operations that have no permission."""

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import include, path
from django.utils.deprecation import MiddlewareMixin
from django.views import View
from django.views.decorators.http import require_http_methods, require_POST

from tmkb.authoring.stacks.django import User


class Membership(models.Model):
    user_id = models.IntegerField()
    organization = models.ForeignKey("stage.Organization", models.CASCADE)
    active = models.BooleanField(default=True)


class AuditEntry(models.Model):
    text = models.TextField()
    organization = models.ForeignKey("stage.Organization", models.CASCADE)


PERMISSIONS = {
    "admin": {"users.disable", "audit.read", "audit.clear"},
    "auditor": {"audit.read"},
    "member": set(),
}


NEEDS = {
    ("manage:disable", "POST"): "users.disable",
    ("manage:audit", "GET"): "audit.read",
    ("manage:audit", "HEAD"): "audit.read",
    ("manage:audit", "DELETE"): "audit.clear",
}


class DemandLogin(MiddlewareMixin):
    """Refuse disabled users, and anonymous ones for the operations of the management area."""

    def process_view(self, request, view, args, kwargs):
        user = request.user
        if user.is_authenticated:
            disabled = own_memberships(user).filter(user_id=user.id, active=False).exists()
            return HttpResponse(status=401) if disabled else None
        named = (request.resolver_match.view_name, request.method) in NEEDS
        return redirect_to_login(request.path) if named else None


class AnswerOtherMethods(MiddlewareMixin):
    """Let class-based views answer methods that they do not define: OPTIONS with names of methods, others with 405."""

    def process_view(self, request, view, args, kwargs):
        method = "get" if request.method == "HEAD" else request.method.lower()
        undefined = hasattr(view, "view_class") and getattr(view.view_class, method, None) in (None, View.options)
        return view(request, *args, **kwargs) if undefined else None


# region idiom
class Guard(MiddlewareMixin):  # NEEDS: ("manage:audit", "GET") to "audit.read"
    def process_view(self, request, view, args, kwargs):
        match, role = request.resolver_match, getattr(request.user, "role", None)
        needed = NEEDS.get((match.view_name, request.method))
        if "manage" in match.app_names and needed not in PERMISSIONS.get(role, ()):
            raise PermissionDenied


# endregion

MIDDLEWARE = ["app.DemandLogin", "app.AnswerOtherMethods", "app.Guard"]


def own_memberships(user):
    return Membership.objects.filter(organization_id=user.organization_id)


class DisableUser(View):
    def post(self, request, user_id):
        membership = get_object_or_404(own_memberships(request.user), user_id=user_id)
        membership.active = False
        membership.save()
        AuditEntry.objects.create(text=f"{user_id} disabled", organization_id=request.user.organization_id)
        return HttpResponse(status=204)


class Audit(View):
    def setup(self, request, *args, **kwargs):
        super().setup(request, *args, **kwargs)
        self.entries = AuditEntry.objects.filter(organization_id=getattr(request.user, "organization_id", None))

    def get(self, request):
        return JsonResponse(list(self.entries.values_list("text", flat=True)), safe=False)

    def delete(self, request):
        self.entries.delete()
        return HttpResponse(status=204)


@require_POST
def purge(request):
    """Delete the log of all organizations. A maintenance route that was added later, for one use."""
    AuditEntry.objects.all().delete()
    return HttpResponse(status=204)


@require_http_methods(["POST", "OPTIONS"])
def reset(request):
    """Enable all accounts. The view answers OPTIONS itself, for a frontend on another origin."""
    Membership.objects.update(active=True)
    return HttpResponse(status=204)


management = [
    path("users/<int:user_id>/disable", DisableUser.as_view(), name="disable"),
    path("audit", Audit.as_view(), name="audit"),
    path("purge", purge),
    path("reset", reset),
]
urlpatterns = [path("admin/", include((management, "manage")))]


def event_start():
    for user in User.objects.all():
        Membership.objects.create(user_id=user.id, organization_id=user.organization_id)
    Membership.objects.create(user_id=99, organization_id=1, active=False)
    AuditEntry.objects.create(text="Alice read the payroll", organization_id=1)


def event_disable(user_id):
    Membership.objects.filter(user_id=user_id).update(active=False)


def state_accounts():
    return list(Membership.objects.order_by("id").values_list("user_id", "active"))


def state_log():
    return list(AuditEntry.objects.order_by("id").values_list("text", flat=True))
