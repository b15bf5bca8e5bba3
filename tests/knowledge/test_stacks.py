"""The stack of a question: by name, by signs in its text, or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.errors import SpecError
from tmkb.knowledge import stacks


@pytest.fixture(scope="module")
def known():
    return stacks.packaged()


@pytest.mark.parametrize(
    ("context", "language", "framework", "stack"),
    [
        ("", None, "Ruby on Rails", "rails"),
        ("", None, "ASP.NET Core", "aspnet"),
        ("", None, " next.js ", "nextjs"),
        ("", None, "aspnet-core", "aspnet"),
        ("", None, "ruby-on-rails", "rails"),
        ("", None, "fast_api", "fastapi"),
        ("", None, "dotnet", "aspnet"),
        ("a NestJS guard", None, "node", "nestjs"),
        ("", "python", "node", "flask"),
        ("class ShipmentViewSet(viewsets.ModelViewSet)", None, "django", "drf"),
        ("a viewset with get_queryset", None, "django", "drf"),
        ("a view with get_queryset and page.tsx", None, "express", "express"),
        ("a class with get_queryset", "python", None, "drf"),
        ("a ViewSet with get_queryset", None, None, "drf"),
        ("class ClaimList(LoginRequiredMixin, ListView): def get_queryset(self)", None, None, "django_views"),
        ("an UpdateView with templates and HTMX", "python", "Django", "django_views"),
        ("a Flask page with HTMX", "python", None, "flask"),
        ("generics.ListAPIView with get_queryset and serializers.ModelSerializer", None, "django", "drf"),
        ("class ClaimAdmin(admin.ModelAdmin): def get_queryset(self, request)", None, None, "django_admin"),
        ("an action in admin.py with readonly_fields", "python", "django", "django_admin"),
        ("a view that only an admin may call", "python", "django", "django"),
        ("a Django Ninja router that lists invoices", None, None, "django_ninja"),
        (
            "from ninja import Router\n@router.patch('/claims/{claim_id}', response=ClaimOut)",
            None,
            None,
            "django_ninja",
        ),
        ("", "python", "django-ninja", "django_ninja"),
        ("a form that a turtle fills in", "python", "django", "django"),
        ("a Django view that queues a Celery task", None, None, "django_celery"),
        ("@shared_task\ndef export(user_id): Deal.objects.filter(owner=user_id)", "python", None, "django_celery"),
        ("", None, "Django with Celery", "django_celery"),
        ("celery in a soup, with Django", None, "drf", "drf"),
        ("a WebSocket consumer with Django Channels", None, None, "django_channels"),
        ("class Room(AsyncJsonWebsocketConsumer): async def receive_json", "python", None, "django_channels"),
        ("a Django view for a list of chat channels", None, None, "django"),
        ("a FastAPI route with SQLModel", None, None, "fastapi_sqlmodel"),
        ("session.exec(select(Invoice)).all()", "python", "fastapi", "fastapi_sqlmodel"),
        ("", None, "SQLModel", "fastapi_sqlmodel"),
        ("session.execute(select(Invoice))", "python", "fastapi", "fastapi"),
        ("FastAPI with MongoDB and Beanie", None, None, "fastapi_beanie"),
        ("async def show(id: PydanticObjectId)", "python", "fastapi", "fastapi_beanie"),
        ("Flask and pymongo", None, None, "flask"),
        ("a FastAPI endpoint that queues an arq job", None, None, "fastapi_jobs"),
        ("@dramatiq.actor\ndef export(user_id)", "python", "fastapi", "fastapi_jobs"),
        ("a FastAPI route for the jobs of a user", None, None, "fastapi"),
        ("", "ts", None, "express"),
        ("", "C#", None, "aspnet"),
        ("", "golang", None, "go"),
        ("", "fastapi", None, "fastapi"),
        ("", "any", "ANY", None),
        ("", "", "", None),
        ("", "elixir", "phoenix", None),
        ("in Express", "elixir", None, None),
        ("", "python", "bottle", "flask"),
        ("in Express", "go", "fiber2", "go"),
        ("Adding PATCH /api/invoices/:id in Express with Prisma", None, None, "express_prisma"),
        ("app/api/team/route.ts: export async function POST", None, None, "nextjs"),
        ("class InvoiceController extends Controller { Invoice::findOrFail($id) }", None, None, "laravel"),
        ("Deno.serve(async (req) => { ... })", "typescript", None, "supabase_edge"),
        ("an edge function that calls supabase.from('invoices')", None, None, "supabase_edge"),
        ("", "ts", "Supabase Edge Functions", "supabase_edge"),
        ("supabase/functions/approve/index.ts", "typescript", "supabase", "supabase_edge"),
        ("a policy for a Supabase table", "typescript", "supabase", "supabase"),
        ("a security definer function that is called with supabase.rpc()", "sql", "supabase", "supabase_rpc"),
        ("create function copy_note(note bigint) returns void language plpgsql", "sql", "supabase", "supabase_rpc"),
        ("a select policy on a table of Supabase", "sql", "supabase", "supabase"),
        ("row level security for a table that our React app reads", "sql", "supabase", "supabase"),
        ("storage policies for the bucket `plans`", "sql", "supabase", "supabase_storage"),
        ("create policy p on storage.objects using (bucket_id = 'a')", "sql", "supabase", "supabase_storage"),
        ("Edge Function (Deno) that writes a PDF into a bucket", "typescript", "supabase", "supabase_edge"),
        ("a SvelteKit form action that calls supabase.from('notes').insert(note)", None, "supabase", "supabase_js"),
        ("const { data } = await supabase.auth.getUser() // @supabase/ssr", "typescript", "supabase", "supabase_js"),
        ("a SvelteKit action that calls a security definer function", "typescript", "supabase", "supabase_js"),
        ("storage.objects policies for the bucket that supabase-js uploads to", "typescript", "supabase", "supabase_storage"),
        ("a Channels consumer that joins a group", "python", "django", "django_channels"),
        ("a SvelteKit form action", None, None, "nextjs"),
        ("app/api/rooms/route.ts as an edge function on Vercel", None, None, "nextjs"),
        ("func (h *Handler) Get(c *gin.Context)", None, None, "go_gin"),
        ("@GetMapping on a Kotlin controller", None, None, "spring_kotlin"),
        ("@GetMapping on a controller", "kotlin", None, "spring_kotlin"),
        ("", "Kotlin 2.2", "Spring Boot", "spring_kotlin"),
        ("", "kt", "Ktor", "spring_kotlin"),
        ("", None, "Kotlin", "spring_kotlin"),
        ("", None, "Spring Boot (Kotlin)", "spring_kotlin"),
        ("@GetMapping\nfun show(@PathVariable id: Long) = 1", None, None, "spring_kotlin"),
        ("fun mayEdit(user: User, sheet: Sheet) = user == sheet.author", None, None, "spring_kotlin"),
        ("val sheet = sheets.findByIdOrNull(id) ?: throw NotFound()", None, None, "spring_kotlin"),
        ("a Spring service in Java, called by an app in Kotlin", "java", None, "spring"),
        ("in Kotlin we had @GetMapping", "java", "spring", "spring"),
        ("@GetMapping public Sheet show(@PathVariable long id)", None, None, "spring"),
        ("a Spring controller, for fun", None, None, "spring"),
        ("for fun I changed the number in the address", None, None, None),
        ("celery task that exports invoices", None, None, "flask"),
        ("GraphQL resolver in Rails", None, None, "rails_graphql"),
        ("GraphQL resolver", None, None, "graphql"),
        ("NestJS guard", "js", None, "nestjs"),
        ("", "TypeScript 5.6", "Next.js 15", "nextjs"),
        ("", "python 3", None, "flask"),
        ("", None, "Express knex", "express_knex"),
        ("", None, "KNEX", "express_knex"),
        ("an Express route that reads an order with Kysely", None, None, "express_kysely"),
        ("await db.selectFrom('orders').where('id', '=', id).executeTakeFirst()", "ts", "express", "express_kysely"),
        ("an Express route that selects from a table", None, None, "express"),
        ("const order = await Order.findById(req.params.id)", "js", "express", "express_mongoose"),
        ("an Express route that calls sequelize", None, None, "express_sequelize"),
        ("Invoice.findByPk(req.params.id)", "js", "express", "express_sequelize"),
        ("", None, "Express + Sequelize", "express_sequelize"),
        ("a NestJS service with Sequelize", None, None, "nestjs"),
        ("", None, "prisma", "express_prisma"),
        ("a page.tsx", None, "Drizzle", "nextjs_drizzle"),
        ("a NestJS guard", None, "Prisma", "nestjs_prisma"),
        ("", "typescript", "NestJS + Prisma", "nestjs_prisma"),
        ("constructor(private prisma: PrismaService)", None, None, "nestjs_prisma"),
        ("Next.js server action: await db.insert(rooms) // drizzle", None, None, "nextjs_drizzle"),
        ("Next.js server action with 'use server' and revalidatePath", None, None, "nextjs_actions"),
        (
            "Next.js: 'use server', revalidatePath('/rooms'), await db.insert(rooms) // drizzle",
            None,
            None,
            "nextjs_drizzle",
        ),
        ("a page.tsx whose form has useActionState", None, "Next.js 15", "nextjs_actions"),
        ("app/api/rooms/route.ts: await Room.findByIdAndUpdate(id, body)", None, None, "nextjs_mongoose"),
        ("Next.js server action with 'use server' and revalidatePath on MongoDB", None, None, "nextjs_mongoose"),
        ("a server component that passes fields to a client component", None, "Next.js", "nextjs_pages"),
        ("app/invoices/[id]/page.tsx: export default async function Page({ params })", None, None, "nextjs_pages"),
        ("a route handler of the Next.js App Router", None, None, "nextjs"),
        ("a page.tsx with a query in Drizzle", None, "Next.js", "nextjs_drizzle"),
        ("", "ts", "Next.js 15 + Mongoose", "nextjs_mongoose"),
        ("", None, "Mongoose", "express_mongoose"),
        ("app/api/rooms/route.ts", None, "nextjs", "nextjs"),
        ("", None, "Next.js server actions", "nextjs_actions"),
        ("a protectedProcedure that deletes an invoice", "ts", "Next.js", "nextjs_trpc"),
        ("", None, "tRPC", "nextjs_trpc"),
        ("a tRPC router in Express", None, None, "express"),
        ("const repo = dataSource.getRepository(Invoice) // TypeORM", "ts", "express", "express_typeorm"),
        ("a NestJS service with TypeORM", None, None, "nestjs"),
        ("a NestJS guard", None, "TypeORM", "nestjs"),
        ("a Socket.IO handler with socket.on('message')", None, None, "express_socketio"),
        ("io.on('connection', (socket) => { socket.join(room) })", "js", "Express", "express_socketio"),
        ("an Express route that opens a WebSocket", None, None, "express"),
        ("a BullMQ worker that publishes a document", "typescript", None, "express_jobs"),
        ("new Worker('publish', async (job) => publish(job.data))", "js", "express", "express_jobs"),
        ("an Express route for the agenda of a meeting", None, None, "express"),
        ("an assistant with the Vercel AI SDK inside Express", None, None, "express_ai"),
        ("server.registerTool('pay', { inputSchema }, async (args) => pay(args))", "js", "express", "express_ai"),
        ("a tool for the admins in Express", None, None, "express"),
        ("", None, "TypeORM", "express_typeorm"),
        ("@Get(':id') findOne(@Param('id') id: string) { return this.items.findOneBy({ id }) }", None, None, "nestjs"),
        ("", None, "NestJS + Mongoose", "nestjs"),
        ("async def show(db: AsyncSession)", "python", None, "fastapi_async"),
        ("", None, "FastAPI (async SQLAlchemy)", "fastapi_async"),
        ("FastAPI route with a Session", None, None, "fastapi"),
        ("Django view with AsyncSession", None, None, "django"),
        ("", "python", "mongodb", "fastapi_beanie"),
        ("def show(): ... mongodb", None, None, "fastapi_beanie"),
        ("a list in MongoDB", None, None, "express_mongoose"),
        ("", None, "MongoDB", "express_mongoose"),
        ("rows, err := pool.Query(ctx, sql) // pgxpool", "go", None, "go_pgx"),
        ("", "go", "Echo v4", "go_echo"),
        ("r.Get with chi.URLParam and chi.Router", "go", None, "go_chi"),
        ("", None, "go-chi", "go_chi"),
        ("chi.NewRouter, chi.URLParam and a *gorm.DB", "go", None, "go_gorm"),
        ("a handler that calls db.First of gorm", "go", "chi", "go_gorm"),
        ("", None, "Gin + GORM", "go_gorm"),
        ("-- name: GetInvoice :one", "go", "chi", "go_sqlc"),
        ("sqlc query on a pgxpool with pgx.Tx", None, None, "go_sqlc"),
        ("a component with wire:click and public Invoice $invoice", "php", "laravel", "laravel_livewire"),
        ("", "php", "Laravel Livewire 3", "laravel_livewire"),
        ("class ClaimResource extends Resource // Filament 4 on Livewire", None, None, "laravel_filament"),
        ("a Laravel controller", None, None, "laravel"),
        ('app.MapDelete("/invoices/{id:int}", Remove);', "csharp", None, "aspnet_minimal"),
        ("", None, "Blazor Server", "aspnet_blazor"),
        ("a Blazor component with EditForm and OnValidSubmit", "csharp", None, "aspnet_blazor"),
        ("Pages/Invoices/Edit.cshtml.cs with OnPostAsync", None, None, "aspnet_razor"),
        ("public class EditModel : PageModel", "csharp", "ASP.NET Core", "aspnet_razor"),
        ("", None, "Razor Pages", "aspnet_razor"),
        ("a controller with Dapper: await db.QuerySingleAsync<Invoice>(sql)", "csharp", None, "aspnet_dapper"),
        ("a minimal API endpoint (MapGet) with Dapper", None, None, "aspnet_dapper"),
        ("", None, "Dapper", "aspnet_dapper"),
        ("a controller with ExecuteAsync", "c#", "aspnet", "aspnet"),
        ("a SignalR hub for chat rooms", None, None, "aspnet_signalr"),
        ("public class Chat : Hub { await Clients.Group(room)", "csharp", "aspnet", "aspnet_signalr"),
        ("a Blazor Server page over SignalR", None, None, "aspnet_blazor"),
        ("a view with asp-for of an MVC controller", "csharp", None, "aspnet"),
        ("[HttpGet] action of a ControllerBase", None, None, "aspnet"),
        ("a controller with policy_scope and authorize @invoice", "ruby", None, "rails_pundit"),
        (
            "class ClaimPolicy < ApplicationPolicy; class Scope < ApplicationPolicy::Scope",
            None,
            "Rails 8",
            "rails_pundit",
        ),
        ("", None, "Rails with Pundit", "rails_pundit"),
        ("a Rails controller with params[:id] and a before_action", None, None, "rails"),
        ("func Register(g *echo.Group, client *ent.Client)", "go", None, "go_ent"),
        ("a chi handler that updates a valve with ent", "go", None, "go_ent"),
        ("", "go", "Echo + ent", "go_ent"),
        ("parent and child tents in a Go handler", "go", None, "go"),
        ("a gRPC method that moves stock, with claims from an interceptor", "go", None, "go_grpc"),
        ('return nil, status.Error(codes.NotFound, "no such bin")', "go", None, "go_grpc"),
        ("", "go", "connect-go", "go_grpc"),
        ("a Go handler that answers status codes", "go", None, "go"),
        ("a Sidekiq job that settles tickets", "ruby", "rails", "rails_jobs"),
        ("class SettleJob < ApplicationJob; def perform(ids)", "ruby", "rails", "rails_jobs"),
        ("a Rails page that lists jobs of a recruiter", "ruby", "rails", "rails"),
        ("GraphQL type Types::SurveyType in Rails", None, None, "rails_graphql"),
        ("class Mutations::Approve < Mutations::BaseMutation", "ruby", "rails", "rails_graphql"),
        ("a migration with null: false in Rails", None, None, "rails"),
        ("a resolver that answers protobuf", None, None, None),
        ("a MediatR command that approves a claim, with a pipeline behavior", None, None, "aspnet_mediatr"),
        (
            "public class GetInvoiceHandler(AppDb db, ICurrentUser me) : IRequestHandler<GetInvoice, InvoiceView?>",
            "csharp",
            None,
            "aspnet_mediatr",
        ),
        ("a command handler", "csharp", "ASP.NET Core", "aspnet_mediatr"),
        ("", None, "ASP.NET Core + MediatR", "aspnet_mediatr"),
        ("a command handler of a CQRS module", None, "NestJS", "nestjs"),
        ("a command handler in Laravel", None, None, "laravel"),
        ("CQRS with a command handler", None, None, None),
        ("invoices are exported by Spring Data REST", None, None, "spring_data_rest"),
        ("@RepositoryRestResource interface Claims extends JpaRepository<Claim, Long>", None, None, "spring_data_rest"),
        ("a REST controller with a Spring Data repository", "java", None, "spring"),
        ("Spring Data REST with @RepositoryRestResource", "kotlin", None, "spring_kotlin"),
        ('@KafkaListener(topics = "orders") public void on(OrderPlaced event)', None, None, "spring_messaging"),
        ("a Kafka consumer that closes claims", "java", "Spring Boot", "spring_messaging"),
        ("a Kafka consumer that closes claims", "kotlin", "Spring Boot", "spring_kotlin"),
        ("a Kafka consumer that closes claims", None, None, None),
        ("a Kafka consumer in Go that closes claims", None, None, "go"),
        ("", None, "Spring Kafka", "spring_messaging"),
        ("an ItemProcessor of Spring Batch that imports contacts", None, None, "spring_jobs"),
        ("@Async public void export(long id)", "java", None, "spring_jobs"),
        ("a cron entry that calls artisan", None, None, "laravel"),
        ("a controller without jobs", "java", "spring", "spring"),
        ("@QueryMapping Invoice invoice(@Argument long id)", None, None, "spring_graphql"),
        ("a GraphQL mutation", "java", "Spring Boot", "spring_graphql"),
        ("a GraphQL mutation in a Spring service", None, None, "spring_graphql"),
        ("", "java", "Spring for GraphQL", "spring_graphql"),
        ("a Hangfire job that publishes documents", None, None, "aspnet_jobs"),
        (
            "protected override Task ExecuteAsync(CancellationToken stop) of a BackgroundService",
            "c#",
            None,
            "aspnet_jobs",
        ),
        ("a background job in Laravel", None, None, "laravel"),
        ("a Hot Chocolate GraphQL query", None, None, "aspnet_graphql"),
        ("[QueryType] public static class Invoices", "csharp", None, "aspnet_graphql"),
        ("a GraphQL mutation", "csharp", "ASP.NET Core", "aspnet_graphql"),
        ("HasQueryFilter with an ITenantProvider in our DbContext", None, None, "aspnet_efcore"),
        ("a DbContext with invoices", "csharp", None, "aspnet"),
        ("override Task<Reply> GetInvoice(Request request, ServerCallContext context)", "csharp", None, "aspnet_grpc"),
        ("a gRPC service in ASP.NET Core", None, None, "aspnet_grpc"),
        ("a gRPC service in Go", None, None, "go_grpc"),
        ("a gRPC service", None, None, None),
        ("an OData controller with $expand", None, None, "aspnet_odata"),
        ("public class ShowInvoice : EndpointWithoutRequest<InvoiceView>", "csharp", None, "aspnet_fastendpoints"),
        ("", None, "FastEndpoints", "aspnet_fastendpoints"),
        (
            "@GetMapping Mono<Invoice> show(@PathVariable long id) { return invoices.findById(id); }",
            None,
            None,
            "spring_webflux",
        ),
        ("a WebFlux handler with R2DBC", "java", "Spring", "spring_webflux"),
        ("a service that deletes tickets with jOOQ", None, None, "spring_jooq"),
        ("return dsl.selectFrom(INVOICES).where(INVOICES.ID.eq(id)).fetchOptional()", "java", "spring", "spring_jooq"),
        ("a queued job that exports deals", "php", "laravel", "laravel_jobs"),
        ("deals are exported in Laravel Queues", "php", "laravel", "laravel_jobs"),
        ("final class ExportDeals implements ShouldQueue { use Queueable; }", None, "Laravel 12", "laravel_jobs"),
        ("a Laravel controller for jobs of a recruiter", None, None, "laravel"),
        ("a chi handler with sqlx", "go", None, "go_sqlx"),
        ("err := s.db.GetContext(ctx, &claim, query, id)", "go", None, "go_sqlx"),
        ("a Rust handler with axum and sqlx", "rust", "axum", None),
        ("broadcast the note with Turbo Streams", "ruby", "rails", "rails_cable"),
        ("class RoomChannel < ApplicationCable::Channel; def subscribed", "ruby", None, "rails_cable"),
        ("a model Channel in Rails", None, None, "rails"),
        ("func (h *Handler) Get(c *fiber.Ctx) error", "go", None, "go_fiber"),
        ("", "go", "Fiber v2", "go_fiber"),
        ("optical fibers in a Go handler", "go", None, "go"),
        ("func (w *W) Work(ctx context.Context, job *river.Job[Args]) error", "go", None, "go_jobs"),
        ("an Asynq task that exports deals", "go", None, "go_jobs"),
        ("a gauge at the river, in Go", "go", None, "go"),
        ("a Go handler that opens scans with gocloud.dev/blob", None, None, "go_blob"),
        ("bucket, err := blob.OpenBucket(ctx, url)", "go", None, "go_blob"),
        ("a Go handler with a column blob", "go", None, "go"),
        ("an Inertia page of an invoice", "php", "laravel", "laravel_inertia"),
        ("return Inertia::render('Invoices/Show', $props);", "php", "laravel", "laravel_inertia"),
        ("inertial sensors in a Laravel controller", "php", "laravel", "laravel"),
        ("a Nova resource for invoices in Laravel", None, None, "laravel_nova"),
        ("public static function indexQuery(NovaRequest $request, $query)", "php", "laravel", "laravel_nova"),
        ("a Laravel controller for a supernova catalogue", "php", None, "laravel"),
        ("ActiveAdmin.register Invoice do", "ruby", None, "rails_activeadmin"),
        ("a batch action in Active Admin", "ruby", "rails", "rails_activeadmin"),
        ("a page for an active administrator in Rails", None, None, "rails"),
        ("the bookings of an ENT clinic, in Go", "go", None, "go"),
        ("a GraphQL mutation that asks Pundit", "ruby", "rails", "rails_graphql"),
        ("an active job offer and a form with useForm", None, None, None),
        ("an http.Handler in Go", None, None, "go"),
        ("a trailspring expressway", None, None, None),
        ("background job processing", None, None, None),
    ],
)
def test_choice(known, context, language, framework, stack):
    assert known.choose(context, language, framework) == stack


def test_every_name_leads_to_its_stack(known):
    for name, each in known.stacks.items():
        for alias in (name, each["name"], *each.get("aliases", ())):
            assert name in known.fallbacks(known.choose("", None, alias.upper()))


def test_names_refer_to_each_other(known):
    assert {each["stack"] for each in known.languages.values()} <= set(known.stacks)
    assert {each["language"] for each in known.stacks.values()} <= set(known.languages)
    aliases = [alias for each in known.stacks.values() for alias in each.get("aliases", ())]
    assert len(aliases) == len({*aliases})
    for name in known.stacks:
        assert known.fallbacks(name)[0] == name
    assert {each.get("of") for each in known.stacks.values() if "of" in each} <= set(known.stacks)
    assert known.fallbacks("nextjs_drizzle") == ["nextjs_drizzle", "nextjs", "express"]
    assert known.fallbacks("nestjs") == ["nestjs", "express"]
    assert known.fallbacks(None) == []


def test_signs_are_in_lower_case(known):
    for each in (*known.stacks.values(), *known.languages.values()):
        assert [sign for sign in each.get("signs", ()) if sign != sign.lower()] == []


@given(st.text(max_size=60), st.one_of(st.none(), st.text(max_size=12)), st.one_of(st.none(), st.text(max_size=12)))
def test_any_text_has_a_stack_or_none(known, context, language, framework):
    assert known.choose(context, language, framework) in (None, *known.stacks)


def test_an_invalid_file_is_named(tmp_path):
    (tmp_path / "_stacks.yaml").write_text("kind: stacks\nlanguages: {}\n")
    with pytest.raises(SpecError) as raised:
        stacks.read(str(tmp_path / "_stacks.yaml"))
    assert raised.value.problems[0].file.endswith("_stacks.yaml")


def test_a_file_is_read_again_only_after_a_change(tmp_path):
    file = tmp_path / "_stacks.yaml"
    review = "review: {files: [.rs], except: ['*/tests/*']}\n"
    file.write_text("kind: stacks\nlanguages: {go: {stack: go}}\nstacks: {go: {name: Go, language: go}}\n" + review)
    first = stacks.read(str(file))

    assert stacks.read(str(file)) is first
    file.write_text("kind: stacks\nlanguages: {go: {stack: go}}\nstacks: {go: {name: Golang, language: go}}\n" + review)
    assert stacks.read(str(file)).stacks["go"]["name"] == "Golang"
    file.unlink()
    with pytest.raises(SpecError):
        stacks.read(str(file))
