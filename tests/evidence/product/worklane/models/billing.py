from datetime import date

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from worklane.extensions import db
from worklane.models.work import Project


class Invoice(db.Model):
    __tablename__ = "invoices"
    __table_args__ = (UniqueConstraint("organization_id", "number"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))
    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id"))
    number: Mapped[str]
    customer: Mapped[str]
    status: Mapped[str] = mapped_column(default="open")  # or paid, void
    issued_on: Mapped[date]

    project: Mapped[Project | None] = relationship()
    lines: Mapped[list["InvoiceLine"]] = relationship(back_populates="invoice", cascade="all, delete-orphan")

    @property
    def total(self):
        return sum(line.quantity * line.unit_price for line in self.lines)


class InvoiceLine(db.Model):
    __tablename__ = "invoice_lines"

    id: Mapped[int] = mapped_column(primary_key=True)
    invoice_id: Mapped[int] = mapped_column(ForeignKey("invoices.id"))
    text: Mapped[str]
    quantity: Mapped[int] = mapped_column(default=1)
    unit_price: Mapped[int]  # cents

    invoice: Mapped[Invoice] = relationship(back_populates="lines")
