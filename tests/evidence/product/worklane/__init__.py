"""Worklane: projects, documents and invoices for teams."""

from flask import Flask, jsonify
from werkzeug.exceptions import HTTPException

from worklane import blueprints, cli, config
from worklane.extensions import db, login_manager


def create_app(overrides=None):
    app = Flask(__name__)
    app.config.from_object(config.Config)
    app.config.update(overrides or {})
    db.init_app(app)
    login_manager.init_app(app)
    blueprints.register(app)
    cli.register(app)
    app.register_error_handler(HTTPException, _http_error)
    return app


def _http_error(error):
    return jsonify(error=error.description), error.code
