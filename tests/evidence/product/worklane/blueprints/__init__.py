from worklane import context
from worklane.blueprints import (
    admin,
    api,
    audit,
    auth,
    comments,
    documents,
    exports,
    invoices,
    keys,
    members,
    notifications,
    projects,
    reports,
    search,
    settings,
    share,
    tasks,
    teams,
    webhooks,
)

_MODULES = (
    admin,
    api,
    audit,
    auth,
    comments,
    documents,
    exports,
    invoices,
    keys,
    members,
    notifications,
    projects,
    reports,
    search,
    settings,
    share,
    tasks,
    teams,
    webhooks,
)


def register(app):
    app.before_request(context.load)
    for module in _MODULES:
        app.register_blueprint(module.blueprint)
