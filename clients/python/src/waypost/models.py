"""What is sent and answered, as dictionaries with types. Made by scripts/models.py."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class _TriggerStepOnEvent(TypedDict):
    """What every trigger step on event has."""

    event: str


class TriggerStepOnEvent(_TriggerStepOnEvent, total=False):
    """A trigger step on event, as it is sent."""

    filter: str | None


class _TriggerStepOnSchedule(TypedDict):
    """What every trigger step on schedule has."""

    schedule: str
    """Cron expression: minute, hour, day of month, month, day of week."""


class TriggerStepOnSchedule(_TriggerStepOnSchedule, total=False):
    """A trigger step on schedule, as it is sent."""

    timezone: str | None
    """IANA time zone such as `Europe/Berlin`. Default: `UTC`."""


class _TriggerStep(TypedDict):
    """What every trigger step has."""

    id: str
    type: Literal["TRIGGER"]


class TriggerStep(_TriggerStep, total=False):
    """A trigger step, as it is sent."""

    next: list[str] | None
    """The steps that follow."""
    join: Literal["any", "all"] | None
    """Start after the first predecessor (`any`) or after all that are not skipped (`all`)."""
    on: TriggerStepOnEvent | TriggerStepOnSchedule | None


class HttpStepRetry(TypedDict, total=False):
    """A http step retry, as it is sent."""

    maxAttempts: int | None
    initialSeconds: float | None
    maxSeconds: float | None


class _HttpStep(TypedDict):
    """What every http step has."""

    id: str
    type: Literal["HTTP"]
    url: str


class HttpStep(_HttpStep, total=False):
    """A http step, as it is sent."""

    next: list[str] | None
    """The steps that follow."""
    join: Literal["any", "all"] | None
    """Start after the first predecessor (`any`) or after all that are not skipped (`all`)."""
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None
    """Default `GET`; required if there is a body."""
    headers: dict[str, str] | None
    body: Any
    """JSON; strings in it may be templates."""
    timeoutSeconds: int | None
    retry: HttpStepRetry | None
    acceptStatus: list[int] | None
    """Statuses that count as success. Default: 2xx."""


class _NotifyStep(TypedDict):
    """What every notify step has."""

    id: str
    type: Literal["NOTIFY"]
    event: str
    """The event's type becomes `custom.<event>`."""


class NotifyStep(_NotifyStep, total=False):
    """A notify step, as it is sent."""

    next: list[str] | None
    """The steps that follow."""
    join: Literal["any", "all"] | None
    """Start after the first predecessor (`any`) or after all that are not skipped (`all`)."""
    data: dict[str, Any] | None
    """The event's data; strings in it may be templates."""


_ConditionStep = TypedDict(
    "_ConditionStep", {"id": "str", "type": 'Literal["CONDITION"]', "if": "str"}
)
_ConditionStepWords = TypedDict("_ConditionStepWords", {"else": "list[str] | None"}, total=False)


class ConditionStep(_ConditionStep, _ConditionStepWords, total=False):
    """A condition step, as it is sent."""

    join: Literal["any", "all"] | None
    """Start after the first predecessor (`any`) or after all that are not skipped (`all`)."""
    then: list[str] | None
    """The steps that follow."""


class _DelayStep(TypedDict):
    """What every delay step has."""

    id: str
    type: Literal["DELAY"]
    seconds: float


class DelayStep(_DelayStep, total=False):
    """A delay step, as it is sent."""

    next: list[str] | None
    """The steps that follow."""
    join: Literal["any", "all"] | None
    """Start after the first predecessor (`any`) or after all that are not skipped (`all`)."""


class _WaitForEventStep(TypedDict):
    """What every wait for event step has."""

    id: str
    type: Literal["WAIT_FOR_EVENT"]
    event: str


class WaitForEventStep(_WaitForEventStep, total=False):
    """A wait for event step, as it is sent."""

    next: list[str] | None
    """The steps that follow."""
    join: Literal["any", "all"] | None
    """Start after the first predecessor (`any`) or after all that are not skipped (`all`)."""
    match: str | None
    timeoutSeconds: float | None
    """How long to wait. Default: until the run's own timeout."""
    onTimeout: list[str] | None
    """The steps that follow."""


class _RecordStep(TypedDict):
    """What every record step has."""

    id: str
    type: Literal["RECORD"]
    kind: Literal["companies", "deals", "contacts", "orders", "leads", "clients"]
    data: dict[str, Any]
    """The record's fields; strings in it may be templates."""


class RecordStep(_RecordStep, total=False):
    """A record step, as it is sent."""

    next: list[str] | None
    """The steps that follow."""
    join: Literal["any", "all"] | None
    """Start after the first predecessor (`any`) or after all that are not skipped (`all`)."""
    recordId: str | None
    """May be a template. Default: the data's own `id`, or a new one."""


class _WorkflowDefinition(TypedDict):
    """What every workflow definition has."""

    name: str
    status: Literal["DRAFT", "ACTIVE", "PAUSED", "ARCHIVED"]
    steps: list[
        TriggerStep
        | HttpStep
        | NotifyStep
        | ConditionStep
        | DelayStep
        | WaitForEventStep
        | RecordStep
    ]


class WorkflowDefinition(_WorkflowDefinition, total=False):
    """A workflow definition, as it is sent."""

    workflowId: str | None
    """If given, must equal the id in the path."""
    timeoutSeconds: int | None
    """A run that takes longer is FAILED. Default: one day."""


class SavedWorkflow(TypedDict):
    """A saved workflow, as it is answered."""

    workflowId: str
    version: int


class WorkflowSummary(TypedDict):
    """A workflow summary, as it is answered."""

    workflowId: str
    name: str
    status: Literal["DRAFT", "ACTIVE", "PAUSED", "ARCHIVED"] | str
    version: int
    updatedAt: str


class Workflow(TypedDict):
    """A workflow, as it is answered."""

    workflowId: str
    name: str
    status: Literal["DRAFT", "ACTIVE", "PAUSED", "ARCHIVED"] | str
    version: int
    updatedAt: str
    timeoutSeconds: int
    createdAt: str
    steps: list[dict[str, Any]]


class RunStepAttempt(TypedDict):
    """A run step attempt, as it is answered."""

    number: int
    startedAt: str
    endedAt: str | None
    error: str | None


class RunStep(TypedDict):
    """A run step, as it is answered."""

    id: str
    type: (
        Literal["TRIGGER", "HTTP", "NOTIFY", "CONDITION", "DELAY", "WAIT_FOR_EVENT", "RECORD"] | str
    )
    state: (
        Literal["QUEUED", "RUNNING", "WAITING", "SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"] | str
    )
    attempts: list[RunStepAttempt]
    input: Any
    """The step's input."""
    output: Any
    """For an HTTP step: `{status, headers, body}`."""


class Run(TypedDict):
    """A run, as it is answered."""

    runId: str
    workflowId: str
    workflowVersion: int
    state: Literal["QUEUED", "RUNNING", "WAITING", "SUCCEEDED", "FAILED", "CANCELLED"] | str
    triggerPayload: dict[str, Any]
    createdAt: str
    startedAt: str | None
    endedAt: str | None
    error: str | None
    steps: list[RunStep]


class OrderClient(TypedDict):
    """An order client, as it is answered."""

    name: str | None
    email: str | None


class OrderProduct(TypedDict):
    """An order product, as it is answered."""

    name: str | None


class Order(TypedDict):
    """An order, as it is answered."""

    id: str
    orderNumber: str
    status: Literal["PAYMENT_PENDING", "ACTIVE", "COMPLETED", "CANCELLED"] | str
    amount: int
    """In minor units."""
    plan: str | None
    createdAt: str
    client: OrderClient
    product: OrderProduct


class Lead(TypedDict):
    """A lead, as it is answered."""

    id: str
    name: str
    phone: str | None
    email: str | None
    service: str | None
    source: str | None
    status: str | None
    score: int
    createdAt: str


class Client(TypedDict):
    """A client, as it is answered."""

    id: str
    name: str
    email: str | None
    phone: str | None
    company: str | None
    city: str | None
    isActive: bool
    createdAt: str


class AnalyticsMonthlyRevenue(TypedDict):
    """An analytics monthly revenue, as it is answered."""

    month: str
    revenue: int
    """In minor units."""


class AnalyticsSeriesGroup(TypedDict):
    """An analytics series group, as it is answered."""

    value: str | None
    """As it was written, its first 100 characters; null for those that have none."""
    revenue: int
    """Of ACTIVE and COMPLETED orders created in it."""
    orders: int
    leads: int
    clients: int


class _AnalyticsSeries(TypedDict):
    """What every analytics series has."""

    start: str
    """The first day of the step within the span."""
    revenue: int
    """Of ACTIVE and COMPLETED orders created in it."""
    orders: int
    leads: int


class AnalyticsSeries(_AnalyticsSeries, total=False):
    """An analytics series, as it is answered."""

    groups: list[AnalyticsSeriesGroup]
    """The step by what it has in the field, by value; only with `groupBy`."""


class _Analytics(TypedDict):
    """What every analytics has."""

    totalRevenue: int
    """Revenue of ACTIVE and COMPLETED orders, in minor units (cents)."""
    totalOrders: int
    totalLeads: int
    conversionRate: float
    """100 × totalOrders ÷ totalLeads, rounded to two decimals; 0 without leads."""
    monthlyRevenue: list[AnalyticsMonthlyRevenue]
    """The last 12 months including this one (UTC), oldest first."""


class Analytics(_Analytics, total=False):
    """An analytics, as it is answered."""

    series: list[AnalyticsSeries]
    """Step by step, oldest first; only with `from` and `to`."""


class RecordId(TypedDict):
    """A record id, as it is answered."""

    id: str


class StoredCompany(TypedDict):
    """A stored company, as it is answered."""

    id: str
    name: str
    domain: str | None
    industry: str | None
    phone: str | None
    email: str | None
    address: str | None
    city: str | None
    country: str | None
    owner: str | None
    employees: int | None
    annualRevenue: int | None
    """In minor units."""
    createdAt: str
    updatedAt: str


class _CompanyRecord(TypedDict):
    """What every company record has."""

    name: str


class CompanyRecord(_CompanyRecord, total=False):
    """A company record, as it is sent."""

    id: str | None
    """A new one if absent."""
    domain: str | None
    industry: str | None
    phone: str | None
    email: str | None
    address: str | None
    city: str | None
    country: str | None
    owner: str | None
    employees: int | None
    annualRevenue: int | None
    """In minor units."""
    createdAt: str | None
    """Now if absent."""


class StoredDeal(TypedDict):
    """A stored deal, as it is answered."""

    id: str
    title: str
    stage: str | None
    currency: str | None
    companyId: str | None
    companyName: str | None
    contactId: str | None
    contactName: str | None
    owner: str | None
    amount: int | None
    """In minor units."""
    probability: float | None
    """In percent."""
    expectedCloseDate: str | None
    createdAt: str
    updatedAt: str


class _DealRecord(TypedDict):
    """What every deal record has."""

    title: str


class DealRecord(_DealRecord, total=False):
    """A deal record, as it is sent."""

    id: str | None
    """A new one if absent."""
    stage: str | None
    currency: str | None
    companyId: str | None
    companyName: str | None
    contactId: str | None
    contactName: str | None
    owner: str | None
    amount: int | None
    """In minor units."""
    probability: float | None
    """In percent."""
    expectedCloseDate: str | None
    createdAt: str | None
    """Now if absent."""


class StoredContact(TypedDict):
    """A stored contact, as it is answered."""

    id: str
    firstName: str | None
    lastName: str | None
    email: str | None
    phone: str | None
    jobTitle: str | None
    companyId: str | None
    companyName: str | None
    city: str | None
    country: str | None
    owner: str | None
    createdAt: str
    updatedAt: str


class ContactRecord(TypedDict, total=False):
    """A contact record, as it is sent."""

    id: str | None
    """A new one if absent."""
    firstName: str | None
    lastName: str | None
    email: str | None
    phone: str | None
    jobTitle: str | None
    companyId: str | None
    companyName: str | None
    city: str | None
    country: str | None
    owner: str | None
    createdAt: str | None
    """Now if absent."""


class StoredOrderClient(TypedDict, total=False):
    """A stored order client, as it is answered."""

    name: str | None
    email: str | None


class StoredOrderProduct(TypedDict, total=False):
    """A stored order product, as it is answered."""

    name: str | None


class StoredOrder(TypedDict):
    """A stored order, as it is answered."""

    id: str
    orderNumber: str
    status: Literal["PAYMENT_PENDING", "ACTIVE", "COMPLETED", "CANCELLED"] | str
    amount: int
    """In minor units."""
    plan: str | None
    client: StoredOrderClient | None
    product: StoredOrderProduct | None
    createdAt: str
    updatedAt: str


class OrderRecordClient(TypedDict, total=False):
    """An order record client, as it is sent."""

    name: str | None
    email: str | None


class OrderRecordProduct(TypedDict, total=False):
    """An order record product, as it is sent."""

    name: str | None


class _OrderRecord(TypedDict):
    """What every order record has."""

    orderNumber: str
    status: Literal["PAYMENT_PENDING", "ACTIVE", "COMPLETED", "CANCELLED"]
    amount: int
    """In minor units."""


class OrderRecord(_OrderRecord, total=False):
    """An order record, as it is sent."""

    id: str | None
    """A new one if absent."""
    plan: str | None
    client: OrderRecordClient | None
    product: OrderRecordProduct | None
    createdAt: str | None
    """Now if absent."""


class StoredLead(TypedDict):
    """A stored lead, as it is answered."""

    id: str
    name: str
    phone: str | None
    email: str | None
    service: str | None
    source: str | None
    status: str | None
    score: int
    createdAt: str
    updatedAt: str


class _LeadRecord(TypedDict):
    """What every lead record has."""

    name: str


class LeadRecord(_LeadRecord, total=False):
    """A lead record, as it is sent."""

    id: str | None
    """A new one if absent."""
    phone: str | None
    email: str | None
    service: str | None
    source: str | None
    status: str | None
    score: int | None
    """0 if absent."""
    createdAt: str | None
    """Now if absent."""


class StoredClient(TypedDict):
    """A stored client, as it is answered."""

    id: str
    name: str
    email: str | None
    phone: str | None
    company: str | None
    city: str | None
    isActive: bool
    createdAt: str
    updatedAt: str


class _ClientRecord(TypedDict):
    """What every client record has."""

    name: str


class ClientRecord(_ClientRecord, total=False):
    """A client record, as it is sent."""

    id: str | None
    """A new one if absent."""
    email: str | None
    phone: str | None
    company: str | None
    city: str | None
    isActive: bool | None
    """true if absent."""
    createdAt: str | None
    """Now if absent."""


class NewKey(TypedDict):
    """A new key, as it is answered."""

    keyId: str
    key: str


class Key(TypedDict):
    """A key, as it is answered."""

    keyId: str
    name: str
    scopes: list[str]
    rateLimit: int
    expiresAt: str | None
    createdAt: str
    lastUsedAt: str | None
    createdBy: str
    """Who created it: a key's id, `owner` (a person, in the dashboard) or `operator`."""


class _NewWebhook(TypedDict):
    """What every new webhook has."""

    id: str
    url: str
    events: list[str]
    status: Literal["ENABLED"]
    createdAt: str
    secret: str


class NewWebhook(_NewWebhook, total=False):
    """A new webhook, as it is answered."""

    description: str


class _ChangedWebhook(TypedDict):
    """What every changed webhook has."""

    id: str
    url: str
    events: list[str]
    status: Literal["ENABLED", "DISABLED"] | str
    createdAt: str


class ChangedWebhook(_ChangedWebhook, total=False):
    """A changed webhook, as it is answered."""

    description: str


class Webhook(TypedDict):
    """A webhook, as it is answered."""

    id: str
    url: str
    events: list[str]
    status: Literal["ENABLED", "DISABLED"] | str
    createdAt: str
    description: str | None
    disabledReason: str | None
    """Why Waypost disabled it."""
    updatedAt: str


class DeliveryAttempt(TypedDict):
    """A delivery attempt, as it is answered."""

    at: str
    status: int | None
    durationMs: int
    error: str | None
    response: str | None
    """Beginning of the answer's body."""


class Delivery(TypedDict):
    """A delivery, as it is answered."""

    id: str
    eventId: str
    type: str
    status: Literal["PENDING", "SUCCEEDED", "FAILED"] | str
    nextAttemptAt: str | None
    attempts: list[DeliveryAttempt]
    """The last 100, oldest first."""
    createdAt: str


class Event(TypedDict):
    """An event, as it is answered."""

    position: str
    id: str
    type: str
    version: int
    time: str
    subject: str
    correlationId: str | None
    causationId: str | None
    data: dict[str, Any]
    """Depends on the type, see `/asyncapi.json`."""


class SessionUser(TypedDict):
    """A session user, as it is answered."""

    id: int
    name: str
    email: str


class Session(TypedDict):
    """A session, as it is answered."""

    access_token: str
    """A JSON Web Token."""
    token_type: Literal["bearer"]
    expires_in: int
    """In seconds."""
    user: SessionUser


class AccountExportAccount(TypedDict):
    """An account export account, as it is answered."""

    id: int
    name: str | None
    email: str | None
    phone: str | None
    named_phone: str | None
    tier: str
    created_at: str | None


class AccountExport(TypedDict):
    """An account export, as it is answered."""

    account: AccountExportAccount
    organizations: list[str]
    """Those whose staff you belong to."""
    circles: list[dict[str, Any]]
    """Memberships, past ones included."""
    places: list[dict[str, Any]]
    """Those that you added."""
    pauses: list[dict[str, Any]]
    """When you were hidden."""
    sos: list[dict[str, Any]]
    """Your calls for help, and who answered them."""
    visits: list[dict[str, Any]]
    """When you entered and left places."""
    positions: list[dict[str, Any]]
    """Newest first."""


class AccountDeletion(TypedDict):
    """An account deletion, as it is answered."""

    password: str


class _Fix(TypedDict):
    """What every fix has."""

    lat: float
    lng: float


class Fix(_Fix, total=False):
    """A fix, as it is sent."""

    accuracy: float | None
    """In metres."""
    speed: float | None
    """In metres a second."""
    place_name: str | None
    battery: float | None
    recorded_at: str | None
    """At most 5 minutes in the future; now if absent."""


class Position(TypedDict):
    """A position, as it is answered."""

    user_id: int
    name: str
    lat: float
    lng: float
    accuracy: float | None
    """In metres."""
    speed: float | None
    """In metres a second."""
    place_name: str | None
    battery: float | None
    recorded_at: str


class TrailFixe(TypedDict):
    """A trail fixe, as it is answered."""

    lat: float
    lng: float
    recorded_at: str


class Trail(TypedDict):
    """A trail, as it is answered."""

    user_id: int
    name: str
    fixes: list[TrailFixe]
    """Oldest first."""


class Trails(TypedDict):
    """A trails, as it is answered."""

    data: list[Trail]


class Positions(TypedDict):
    """A positions, as it is answered."""

    data: list[Position]


class NewCircle(TypedDict):
    """A new circle, as it is answered."""

    id: str
    name: str


class CircleMember(TypedDict):
    """A circle member, as it is answered."""

    id: int
    name: str


class Circle(TypedDict):
    """A circle, as it is answered."""

    id: str
    name: str | None
    organization: str | None
    """The organization that sees its members' positions, if there is one."""
    members: list[CircleMember]
    created_at: str


class Place(TypedDict):
    """A place, as it is answered."""

    id: str
    name: str
    lat: float
    lng: float
    radius_m: float
    """In metres."""
    created_at: str


class OpenCall(TypedDict):
    """An open call, as it is answered."""

    sos_id: str
    user_id: int
    name: str
    lat: float | None
    lng: float | None
    message: str | None
    late: bool
    """It came long after it was raised."""
    recorded_at: str
    acknowledged: bool
    """Somebody has seen it."""


class OpenCalls(TypedDict):
    """An open calls, as it is answered."""

    data: list[OpenCall]


class _ReadinessChecks(TypedDict):
    """What every readiness checks has."""

    ok: bool


class ReadinessChecks(_ReadinessChecks, total=False):
    """A readiness checks, as it is answered."""

    reason: str


class _Readiness(TypedDict):
    """What every readiness has."""

    ready: bool
    checks: dict[str, ReadinessChecks]


class Readiness(_Readiness, total=False):
    """A readiness, as it is answered."""

    error: str
    """What is not ready, if anything."""


class StartedRun(TypedDict):
    """A started run, as it is answered."""

    runId: str


class Replayed(TypedDict):
    """A replayed, as it is answered."""

    replayed: int


class RotatedSecret(TypedDict):
    """A rotated secret, as it is answered."""

    secret: str


class TestDelivery(TypedDict):
    """A test delivery, as it is answered."""

    deliveryId: str


class SentCode(TypedDict):
    """A sent code, as it is answered."""

    expires_in: int
    """In seconds."""


class Invite(TypedDict):
    """An invite, as it is answered."""

    code: str
    expires_at: str


class JoinedCircle(TypedDict):
    """A joined circle, as it is answered."""

    circle_id: str


class NewPlace(TypedDict):
    """A new place, as it is answered."""

    id: str
    name: str
    lat: float
    lng: float
    radius_m: float
    """In metres."""


class OrganizationInvite(TypedDict):
    """An organization invite, as it is answered."""

    code: str
    expiresAt: str


class AlertAudience(TypedDict):
    """An alert audience, as it is answered."""

    id: int
    name: str | None


class Alert(TypedDict):
    """An alert, as it is answered."""

    sos_id: str
    audience: list[AlertAudience]


class AlertStatus(TypedDict):
    """An alert status, as it is answered."""

    sos_id: str
    status: Literal["acknowledged", "resolved"] | str


Scope = Literal[
    "workflows:trigger",
    "workflows:read",
    "workflows:write",
    "export:companies:read",
    "export:deals:read",
    "export:contacts:read",
    "read:orders",
    "read:leads",
    "read:analytics",
    "read:clients",
    "records:write",
    "webhooks:manage",
    "events:read",
    "circles:manage",
    "keys:manage",
    "admin",
]
"""What a key may do."""

Step = (
    ConditionStep | DelayStep | HttpStep | NotifyStep | RecordStep | TriggerStep | WaitForEventStep
)
"""A step of a workflow."""
