from worklane.models.accounts import Membership, Organization, Team, TeamMember, User
from worklane.models.billing import Invoice, InvoiceLine
from worklane.models.integrations import ApiKey, ShareLink, Webhook, WebhookDelivery
from worklane.models.system import AuditEntry, Export, Job, Notification, OutgoingMail, Passage, SearchEntry, Setting
from worklane.models.work import Comment, Document, DocumentVersion, Project, ProjectMember, Task

__all__ = [
    "ApiKey",
    "AuditEntry",
    "Comment",
    "Document",
    "DocumentVersion",
    "Export",
    "Invoice",
    "InvoiceLine",
    "Job",
    "Membership",
    "Notification",
    "Organization",
    "OutgoingMail",
    "Passage",
    "Project",
    "ProjectMember",
    "SearchEntry",
    "Setting",
    "ShareLink",
    "Task",
    "Team",
    "TeamMember",
    "User",
    "Webhook",
    "WebhookDelivery",
]
