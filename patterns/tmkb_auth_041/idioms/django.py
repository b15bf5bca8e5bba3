"""Invoices of organizations behind a GraphQL API, whose resolvers share one loader. Admins read and flag them."""

import json

from django.contrib.auth.decorators import login_required
from django.db import models
from django.http import JsonResponse
from django.urls import path
from django.views.decorators.http import require_POST
from graphql import build_schema, graphql_sync

schema = build_schema("""
    type Invoice { id: ID! total: Int! }
    type Organization { name: String! invoices: [Invoice!] }
    type User { name: String! organization: Organization! }
    type Flagged { ok: Boolean! invoice: Invoice }
    type Query { me: User! invoices: [Invoice!] node(id: ID!): Invoice }
    type Mutation { flag(id: ID!): Flagged }
""")


def resolver(type_name, field):
    def register(resolve):
        schema.type_map[type_name].fields[field].resolve = resolve
        return resolve

    return register


class InvoiceQuerySet(models.QuerySet):
    def readable_by(self, user):
        return self.filter(organization_id=user.organization_id) if user.role == "admin" else self.none()


class Invoice(models.Model):
    organization = models.ForeignKey("stage.Organization", models.CASCADE)
    total = models.IntegerField()
    flagged = models.BooleanField(default=False)
    objects = InvoiceQuerySet.as_manager()


# region idiom
def load_invoice(info, id):  # mutations add the rule of writers
    readable = Invoice.objects.readable_by(info.context.user)
    invoice = readable.filter(pk=id).first() if id.isdecimal() else None
    if invoice is None:
        raise PermissionError("no such invoice")
    return invoice


# endregion


def invoices_of(info, organization_id):
    user = info.context.user
    if user.role != "admin" or organization_id != user.organization_id:
        raise PermissionError("no such invoice")
    return list(Invoice.objects.readable_by(user))


@resolver("Query", "me")
def resolve_me(_, info):
    return info.context.user


@resolver("Query", "invoices")
def resolve_invoices(_, info):
    return invoices_of(info, info.context.user.organization_id)


@resolver("Organization", "invoices")
def resolve_edge(organization, info):
    return invoices_of(info, organization.id)


@resolver("Query", "node")
def resolve_node(_, info, id):
    return load_invoice(info, id)


@resolver("Mutation", "flag")
def resolve_flag(_, info, id):
    invoice = load_invoice(info, id)
    invoice.flagged = True
    invoice.save()
    return {"ok": True, "invoice": invoice}


@require_POST
@login_required
def graphql(request):
    body = json.loads(request.body)
    result = graphql_sync(schema, body["query"], context_value=request, variable_values=body.get("variables"))
    for error in result.errors or ():
        if error.original_error and not isinstance(error.original_error, PermissionError):
            error.message = "internal error"  # messages of the database contain SQL
    return JsonResponse(result.formatted)


urlpatterns = [path("graphql", graphql)]


def event_invoices():
    Invoice.objects.create(id=1, organization_id=1, total=7341)
    Invoice.objects.create(id=2, organization_id=2, total=9982)


def event_move_invoice(invoice_id, organization_id):
    Invoice.objects.filter(pk=invoice_id).update(organization_id=organization_id)


def state_flags():
    return list(Invoice.objects.order_by("pk").values_list("pk", "flagged"))
