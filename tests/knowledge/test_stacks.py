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
        ("", "typescript", "supabase-js / Realtime", "supabase"),
        ("", "dart", "supabase_flutter / realtime", "supabase"),
        ("", None, "Laravel Zero", "laravel"),
        ("", None, "Rails API + React", "rails"),
        ("", "ruby", "Rails with Supabase", "rails"),
        ("", "php", "Laravel with Supabase", "laravel"),
        ("", "java", "Spring with Firebase Auth", "spring"),
        ("", "typescript", "NestJS with Firebase Auth", "nestjs"),
        ("", "typescript", "Next.js 15, Supabase", "supabase_next"),
        ("", "go", "Go API, Next.js", "go"),
        ("", "python", "Echo bot", "flask"),
        ("", None, "Go with tortoise", "go"),
        ("", "typescript", "SvelteKit + Drizzle", "nextjs_drizzle"),
        ("", "typescript", "Remix + Prisma", "nextjs_remix"),
        ("", None, "Nuxt 3 + Drizzle", "nextjs_drizzle"),
        ("", "typescript", "tRPC v11 + Prisma", "nextjs_trpc"),
        ("", None, "react native", None),
        ("", "ruby", "Rails 6.1 + graphql-ruby 2.x", "rails_graphql"),
        ("", "go", "Go, GraphQL with gqlgen", "go_gqlgen"),
        ("", "java", "Spring Boot with GraphQL", "spring_graphql"),
        ("", "typescript", "GraphQL with Prisma", "graphql"),
        ("", "kotlin", "Quarkus", "spring_kotlin"),
        ("", "java", "Quarkus", "spring_quarkus"),
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
        ("a FastAPI endpoint that queues an arq job", None, None, "fastapi_async"),
        (
            "@router.get('/me')\nasync def me(user = Depends(fastapi_users.current_user()))",
            "python",
            None,
            "fastapi_async",
        ),
        (
            "async def show(id: int): return await Invoice.find_one(Invoice.id == id)",
            "python",
            "fastapi",
            "fastapi_beanie",
        ),
        (
            "async def show(session: SessionDep) # SQLModel, redis.asyncio, fastapi-users",
            "python",
            "fastapi",
            "fastapi_sqlmodel",
        ),
        ("async def export(): build.delay(user.id)", "python", "fastapi", "fastapi_jobs"),
        ("async def show(id: int)", "python", "django", "django"),
        ("@dramatiq.actor\ndef export(user_id)", "python", "fastapi", "fastapi_jobs"),
        ("a FastAPI route for the jobs of a user", None, None, "fastapi"),
        ("db.query.reports.findMany({ with: { post: true } }) in a page.tsx", "ts", "nextjs", "nextjs_drizzle"),
        ("db.query('SELECT 1') in a page.tsx", "ts", "nextjs", "nextjs_pages"),
        ("a server action with next-safe-action in Next.js", None, None, "nextjs_safe_action"),
        (".action(async ({ parsedInput, ctx }) => {", "ts", "nextjs", "nextjs_safe_action"),
        ("a safe action in Next.js", None, None, "nextjs"),
        ("a Next.js fileRouter of UploadThing", None, None, "nextjs_uploadthing"),
        ("f({ pdf: {} }).middleware(check).onUploadComplete(save)", "ts", "nextjs", "nextjs_uploadthing"),
        ("a Next.js route handler that uploads a thing", None, None, "nextjs"),
        ("django-import-export resource for meter readings in Django", None, None, "django_import_export"),
        ("class MeterResource(resources.ModelResource)", "python", "django", "django_import_export"),
        ("a Django view that imports a CSV", None, None, "django"),
        ("Express with node-postgres", None, None, "express_pg"),
        ("const { rows } = await pool.query('SELECT 1')", "js", "express", "express_pg"),
        ("a Prisma model with Postgres in Express", None, None, "express_prisma"),
        ("FastAPI endpoint with SQLAlchemy 2.0 async that writes a setpoint", None, None, "fastapi_async"),
        ("an async FastAPI route that publishes with aiomqtt", None, None, "fastapi_async"),
        ("FastAPI and asyncpg: telemetry of a vehicle", None, None, "fastapi_asyncpg"),
        ("row = await conn.fetchrow('SELECT 1')", "python", "fastapi", "fastapi_asyncpg"),
        ("FastAPI, SQLAlchemy + asyncpg", None, None, "fastapi_async"),
        ("Flask and asyncpg", None, None, "flask"),
        ("FastAPI with SQLModel and AsyncSession", None, None, "fastapi_sqlmodel_async"),
        (
            "async def crew(db: SessionDep): await db.exec(select(CrewMember)) # SQLModel",
            "python",
            "fastapi",
            "fastapi_sqlmodel_async",
        ),
        ("async with AsyncSession(engine) as session", "python", "fastapi", "fastapi_async"),
        ("a LangGraph tool in a FastAPI /chat endpoint", None, None, "fastapi_langchain"),
        ("@tool\nasync def book(ref: str, runtime: ToolRuntime[Context])", "python", "fastapi", "fastapi_langchain"),
        ("a tool for the admins", "python", "fastapi", "fastapi"),
        ("an MCP server beside our FastAPI service", None, None, "fastapi_mcp"),
        ("@mcp.tool\nasync def pay(id: int)", "python", "fastapi", "fastapi_mcp"),
        ("an agent tool in pydantic-ai that reads with asyncpg", "python", "fastapi", "fastapi_ai"),
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
        ("a policy for a Supabase table", "typescript", "supabase", "supabase_policies"),
        ("a security definer function that is called with supabase.rpc()", "sql", "supabase", "supabase_rpc"),
        ("create function copy_note(note bigint) returns void language plpgsql", "sql", "supabase", "supabase_rpc"),
        ("a select policy on a table of Supabase", "sql", "supabase", "supabase_policies"),
        ("row level security for a table that our React app reads", "sql", "supabase", "supabase_policies"),
        ("storage policies for the bucket `plans`", "sql", "supabase", "supabase_storage"),
        ("create policy p on storage.objects using (bucket_id = 'a')", "sql", "supabase", "supabase_storage"),
        ("Edge Function (Deno) that writes a PDF into a bucket", "typescript", "supabase", "supabase_edge"),
        ("a SvelteKit form action that calls supabase.from('notes').insert(note)", None, "supabase", "supabase_js"),
        ("'use server'\nconst supabase = await createClient()", "typescript", "supabase", "supabase_next"),
        ("a Next.js app with Supabase where users add notes", "typescript", "supabase", "supabase_next"),
        ("alter table notes enable row level security; -- next: policies", "sql", "supabase", "supabase_policies"),
        ("tools for a rental company with Spring AI", None, "spring", "spring_ai"),
        ("a repository with JdbcClient", None, "spring", "spring_jdbc"),
        ("namedParameterJdbcTemplate.update(sql, params)", "java", "spring", "spring_jdbc"),
        ("a repository that runs SQL", "java", "spring", "spring"),
        ("a WebSocket for notes with chi", "go", "go", "go_ws"),
        ("func serve(ctx context.Context, c *websocket.Conn)", "go", None, "go_ws"),
        ("a chi handler that opens a socket", "go", "go", "go_chi"),
        ('@Tool(description = "find cranes") List<Crane> find(String region)', "java", "spring", "spring_ai"),
        ("an MCP server in Go with chi", "go", "go", "go_mcp"),
        ("a controller with tools and cranes", "java", "spring", "spring"),
        ("const { data } = await supabase.auth.getUser() // @supabase/ssr", "typescript", "supabase", "supabase_js"),
        ("a SvelteKit action that calls a security definer function", "typescript", "supabase", "supabase_js"),
        (
            "storage.objects policies for the bucket that supabase-js uploads to",
            "typescript",
            "supabase",
            "supabase_storage",
        ),
        ("policies on realtime.messages for a React hook", "typescript", "supabase", "supabase_realtime"),
        ("using ((select realtime.topic()) = 'room:' || id)", "sql", "supabase", "supabase_realtime"),
        ("a React hook that joins a channel", "typescript", "supabase", "supabase_js"),
        (
            "createBrowserClient() and supabase.from('finds'); I write the storage.objects policies for the bucket `finds`",
            "typescript",
            "supabase",
            "supabase_storage",
        ),
        ("Apollo Server on Express with resolvers", "typescript", "express", "express_graphql"),
        ("new DataLoader(async (ids) => prisma.guest.findMany())", "typescript", "express", "express_graphql"),
        ("a REST route with Prisma that loads data", "typescript", "express", "express_prisma"),
        ("import { and } from 'drizzle-orm' // moves into a BullMQ job", "javascript", "express", "express_drizzle"),
        ("a route with drizzle-orm for job offers", "javascript", "express", "express_drizzle"),
        ("a Channels consumer that joins a group", "python", "django", "django_channels"),
        ("a SvelteKit form action", None, None, "nextjs_sveltekit"),
        ("app/api/rooms/route.ts as an edge function on Vercel", None, None, "nextjs"),
        ("func (h *Handler) Get(c *gin.Context)", None, None, "go_gin"),
        ("@GetMapping on a Kotlin controller", None, None, "spring_kotlin"),
        ("@GetMapping on a controller", "kotlin", None, "spring_kotlin"),
        ("", "Kotlin 2.2", "Spring Boot", "spring_kotlin"),
        ("", "kt", "Ktor", "spring_ktor"),
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
        ("a Laravel list with spatie/laravel-query-builder", None, None, "laravel_query_builder"),
        ("QueryBuilder::for(Order::class)->allowedFilters('state')", "php", "laravel", "laravel_query_builder"),
        ("a Laravel query builder with where()", "php", "laravel", "laravel"),
        ("a Rails controller with Action Policy", None, None, "rails_action_policy"),
        ("relation_scope { |scope| scope.where(user: user) }", "ruby", "rails", "rails_action_policy"),
        ("authorize! :edit, @order", "ruby", "rails", "rails_cancancan"),
        ("Article.accessible_by(current_ability).find(params[:id])", "ruby", None, "rails_cancancan"),
        ("a controller whose abilities are in CanCanCan", None, "rails", "rails_cancancan"),
        ("a controller that can read orders", "ruby", "rails", "rails"),
        ("an ASP.NET Core endpoint that returns an Azure Blob SAS token", None, None, "aspnet_azure"),
        ("container.GetBlobClient(key).GenerateSasUri(sas)", "csharp", "asp.net", "aspnet_azure"),
        ("an ASP.NET Core app that runs on Azure", None, None, "aspnet"),
        ("a FastAPI route with pydantic-ai and Qdrant", None, None, "fastapi_ai"),
        ("@agent.tool\nasync def pay(ctx: RunContext[Deps], id: int)", "python", "fastapi", "fastapi_ai"),
        ("a FastAPI route with a Pydantic model", None, None, "fastapi"),
        ("an Express route that reads an order with Kysely", None, None, "express_kysely"),
        ("await db.selectFrom('orders').where('id', '=', id).executeTakeFirst()", "ts", "express", "express_kysely"),
        ("an Express route that selects from a table", None, None, "express"),
        ("const order = await Order.findById(req.params.id)", "js", "express", "express_mongoose"),
        ("const order = await Order.find({ user: req.user._id }).lean()", "js", "express", "express_mongoose"),
        ("const orderSchema = new Schema({ total: Number })", "js", "express", "express_mongoose"),
        ("an Express route with order_id: 3 in its body", None, None, "express"),
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
        ("a Next.js route handler whose AI SDK tools read invoices", None, None, "nextjs_ai"),
        ("app/api/chat/route.ts: streamText({ model, messages, tools: { pay: tool({", None, None, "nextjs_ai"),
        ("streamText({ model, messages, tools: { pay: tool({", "ts", None, "express_ai"),
        ("a tool for the admins in app/api/tools/route.ts", None, None, "nextjs"),
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
        ("a controller that tells the board through IHubContext of SignalR", "csharp", "aspnet", "aspnet"),
        ("class LessonHandler : AuthorizationHandler<Grade, Lesson>", "csharp", "aspnet", "aspnet_policies"),
        ("await authz.AuthorizeAsync(User, lesson, policy)", "csharp", None, "aspnet_policies"),
        ('[Authorize(Policy = "Staff")] on a controller', "csharp", "aspnet", "aspnet"),
        ("IAmazonS3 with GetPreSignedURL in a controller", "csharp", "aspnet", "aspnet_s3"),
        ("a download of reports from AWS S3", None, "ASP.NET Core", "aspnet_s3"),
        ("a controller with ICurrentUser", "csharp", "aspnet", "aspnet"),
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
        ("", "go", "connect-go", "go_connect"),
        ("a gRPC service with protobuf and connect-go", "go", None, "go_connect"),
        ("func (s *Server) Get(ctx context.Context, r *connect.Request[pb.GetRequest])", "go", None, "go_connect"),
        ("a Go handler that connects to a broker", "go", None, "go"),
        ("a Go handler that answers status codes", "go", None, "go"),
        ("a Sidekiq job that settles tickets", "ruby", "rails", "rails_jobs"),
        ("class SettleJob < ApplicationJob; def perform(ids)", "ruby", "rails", "rails_jobs"),
        ("a Rails export that Solid Queue runs, with Mission Control", None, None, "rails_jobs"),
        ("MissionControl::Jobs.base_controller_class = 'AdminController'", "ruby", "rails", "rails_jobs"),
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
        ("broadcast the note with Turbo Streams", "ruby", "rails", "rails_turbo"),
        ("turbo_stream_from @room", "ruby", "rails", "rails_turbo"),
        ("a Pundit policy for views with Hotwire", "ruby", "rails", "rails_pundit"),
        ("an Action Cable channel that streams readings", "ruby", "rails", "rails_cable"),
        ("class RoomChannel < ApplicationCable::Channel; def subscribed", "ruby", None, "rails_cable"),
        ("a model Channel in Rails", None, None, "rails"),
        ("func (h *Handler) Get(c *fiber.Ctx) error", "go", None, "go_fiber"),
        ("", "go", "Fiber v2", "go_fiber"),
        ("optical fibers in a Go handler", "go", None, "go"),
        ("func (w *W) Work(ctx context.Context, job *river.Job[Args]) error", "go", None, "go_jobs"),
        ("an Asynq task that exports deals", "go", None, "go_asynq"),
        ("a gauge at the river, in Go", "go", None, "go"),
        ("a Go handler that opens scans with gocloud.dev/blob", None, None, "go_blob"),
        ("bucket, err := blob.OpenBucket(ctx, url)", "go", None, "go_blob"),
        ("a Go handler with a column blob", "go", None, "go"),
        ("an MCP server in Go that pays invoices", None, None, "go_mcp"),
        ("func pay(ctx context.Context, req mcp.CallToolRequest)", "go", None, "go_mcp"),
        ("server.registerTool() of @modelcontextprotocol/sdk", "ts", None, "express_mcp"),
        ("an MCP server that pays invoices", "python", "fastapi", "fastapi_mcp"),
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
        ("a gRPC server stream with grpc.ServerStreamingServer", "go", None, "go_grpc_stream"),
        ("a resolver of gqlgen on ent", "go", None, "go_gqlgen"),
        ("a Temporal workflow that pays invoices", "go", None, "go_temporal"),
        ("Action Mailbox for replies to tickets", "ruby", "rails", "rails_mailbox"),
        ("a function view with HTMX", "python", "django", "django_functions"),
        ("strawberry-django mutations", "python", "django", "django_strawberry"),
        ("Strawberry on FastAPI", "python", None, "fastapi_strawberry"),
        ("a websocket endpoint", "python", "fastapi", "fastapi_ws"),
        ("findAll(spec, page) of JpaSpecificationExecutor", "java", None, "spring_specification"),
        ("the specifications of a vehicle", "java", "spring", "spring"),
        ("a form with @ModelAttribute in Thymeleaf", "java", None, "spring_mvc"),
        ("an awaitPrincipal() in a coRouter", "kotlin", None, "spring_kotlin_reactive"),
        ("Lighthouse with @canFind", "php", "laravel", "laravel_lighthouse"),
        ("an import with Maatwebsite", "php", None, "laravel_excel"),
        ("a route handler with Kysely", "ts", "nextjs", "nextjs_kysely"),
        ("a handler in pages/api", "ts", "nextjs", "nextjs_api"),
        ("a clerk of the court enters a case", "ts", "nextjs", "nextjs"),
        ("members of an organization, with Clerk", "ts", "nextjs", "nextjs_clerk"),
        ("a cron.schedule of pg_cron", "sql", None, "supabase_cron"),
        ("query = query.Where(i => i.Open)", "c#", None, "aspnet"),
        ("an Ardalis.Specification of invoices", "c#", None, "aspnet_specification"),
        ("an IConsumer<InvoicePaid> of MassTransit", "c#", None, "aspnet_masstransit"),
        ("Sample.query(trx) of Objection.js", "js", None, "express_objection"),
        ("a DynamoDBDocumentClient", "js", None, "express_dynamodb"),
        ("an active job offer and a form with useForm", None, None, None),
        ("an http.Handler in Go", None, None, "go"),
        ("a trailspring expressway", None, None, None),
        ("background job processing", None, None, None),
        ("supabase.from('notes').update(note) in Flutter", "dart", "supabase", "supabase"),
        ("a React app with supabase-js: the migration and its policies", "ts", "supabase", "supabase_policies"),
        ("a React app with supabase-js", "ts", "supabase", "supabase_js"),
        ("Organizations are billable by the hour", "php", "laravel", "laravel"),
        ("a form in a Turbo Frame", "ruby", "rails", "rails"),
    ],
)
def test_choice(known, context, language, framework, stack):
    assert next(iter(known.choose(context, language, framework)), None) == stack


def test_other_variants_of_a_question_come_before_their_stack(known):
    assert known.choose("a gRPC call that reads through sqlc", "go", None) == ["go_grpc", "go_sqlc", "go"]
    assert known.choose("Apollo Server resolvers on Sequelize", None, "express") == [
        *("express_graphql", "graphql", "express_sequelize", "express"),
    ]


def test_every_name_leads_to_its_stack(known):
    for name, each in known.stacks.items():
        for alias in (name, each["name"], *each.get("aliases", ())):
            assert name in known.choose("", None, alias.upper())


@pytest.mark.parametrize("framework", ["Phoenix + React", "Axum with Express-like routes"])
def test_a_name_in_a_framework_of_an_unknown_language_chooses_nothing(known, framework):
    assert known.choose("", "elixir", framework) == []


@pytest.mark.parametrize(("stack", "library"), [
    (stack, library) for library, each in stacks.packaged().stacks.items() for stack in each.get("also", {}).get("stacks", ())
])  # fmt: skip
def test_a_library_is_named_under_each_stack_that_also_uses_it(known, stack, library):
    for sign in known.stacks[library]["also"]["signs"]:
        assert library in known.choose(f"a service with {sign}", None, stack)[1:]
        assert known.is_named(library, sign)


@pytest.mark.parametrize(
    ("question", "stack"),
    [
        ("this.users.findById(id) in a repository of TypeORM", "nestjs"),
        ("client.query of Apollo for the notes", "nextjs"),
        ("mysql2: pool.query('select * from notes where id = ?')", "nextjs"),
    ],
)
def test_what_reads_like_a_library_of_another_stack_is_not_taken_for_it(known, question, stack):
    assert known.choose(question, "typescript", stack) == [stack, "express"]


@pytest.mark.parametrize(
    ("framework", "stack", "library"),
    [
        ("NestJS + Mongoose", "nestjs", "express_mongoose"),
        ("FastAPI with Peewee", "fastapi", "flask_peewee"),
        ("MikroORM", "express", "express_mikro_orm"),
        ("SvelteKit + Drizzle", "nextjs_drizzle", "nextjs_sveltekit"),
        ("knex", "express_knex", None),
        ("rails", "rails", None),
    ],
)
def test_the_nearest_stack_says_how_a_library_differs(known, framework, stack, library):
    available = ["express", "express_knex", "nestjs", "fastapi", "flask", "rails", "nextjs", "nextjs_drizzle"]
    sentence = known.stacks[library].get("lookup", known.stacks[library].get("note")) if library else ""

    assert known.nearest(framework, available) == (stack, sentence)


def test_variants_in_another_language_come_last(known):
    question = "expose the repositories with Spring Data REST"

    assert known.choose(question, "kotlin", "spring") == ["spring_kotlin", "spring", "spring_data_rest"]
    assert known.choose(question, "java", "spring")[0] == "spring_data_rest"
    assert known.choose("", "kotlin", "Quarkus")[-1] == "spring_quarkus"


def test_names_refer_to_each_other(known):
    assert {each["stack"] for each in known.languages.values()} <= set(known.stacks)
    assert {each["language"] for each in known.stacks.values()} <= set(known.languages)
    aliases = [alias for each in known.stacks.values() for alias in each.get("aliases", ())]
    assert len(aliases) == len({*aliases})
    for name in known.stacks:
        assert known.fallbacks(name)[0] == name
    assert {each.get("of") for each in known.stacks.values() if "of" in each} <= set(known.stacks)
    assert {name for each in known.stacks.values() for name in each.get("also", {}).get("stacks", ())} <= set(
        known.frameworks
    )
    assert known.fallbacks("nextjs_drizzle") == ["nextjs_drizzle", "nextjs", "express"]
    assert known.fallbacks("nestjs") == ["nestjs", "express"]
    assert known.fallbacks("nextjs_pages") == ["nextjs_pages", "nextjs_actions", "nextjs", "express"]
    assert known.fallbacks("fastapi_ai") == ["fastapi_ai", "fastapi_async", "fastapi"]
    assert known.fallbacks("go_connect") == ["go_connect", "go_grpc", "go"]
    assert known.fallbacks(None) == []


def test_signs_are_in_lower_case(known):
    for each in (*known.stacks.values(), *known.languages.values()):
        assert [sign for sign in each.get("signs", ()) if sign != sign.lower()] == []


@given(st.text(max_size=60), st.one_of(st.none(), st.text(max_size=12)), st.one_of(st.none(), st.text(max_size=12)))
def test_any_text_has_a_stack_or_none(known, context, language, framework):
    assert {*known.choose(context, language, framework)} <= {*known.stacks}


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
