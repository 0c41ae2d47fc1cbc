using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>
    /// A namespace of a test: its connection strings, clock, faults and timeline.
    /// </summary>
    public sealed partial class ServiceBusEmulator
    {
        private static readonly TimeSpan DefaultTimeout = TimeSpan.FromSeconds(5);

        /// <summary>Parts of the names of exceptions by which frameworks end a test that has not failed.</summary>
        private static readonly string[] NoFailures = { "Ignore", "Inconclusive", "Skip", "Success" };

        private readonly XElement created;
        private CancellationToken cancellation;
        private bool failed;
        private bool removed;
        /// <summary>Whether <see cref="TestAsync(Topology, Func{ServiceBusEmulator, Task}, CancellationToken)"/> ends the namespace.</summary>
        private bool endsWithTest;

        private ServiceBusEmulator(XElement created) => this.created = created;

        /// <summary>The name of the namespace.</summary>
        public string Name => (string)created.Element("name");

        /// <summary>The emulator of the namespace.</summary>
        public EmulatorProcess Emulator { get; private set; }

        /// <summary>The connection string for <c>ServiceBusClient</c>.</summary>
        public string ConnectionString => (string)created.Element("connection_string");

        /// <summary>The connection string for <c>ServiceBusAdministrationClient</c>, 7.20.1 and later.</summary>
        public string AdministrationConnectionString => (string)created.Element("admin_connection_string");

        /// <summary>The connection string for TLS, as in production.</summary>
        public string TlsConnectionString => (string)created.Element("tls_connection_string");

        /// <summary>The file that clients over TLS must trust.</summary>
        public string CaCertificate => (string)Emulator.Ready.Element("ca_certificate")
            ?? throw new ServiceBusEmulatorException(
                "the emulator has no directory for its certificate authority: pass `--tls-directory DIR`");

        /// <summary>The faults of the namespace.</summary>
        public Faults Faults => new Faults(this);

        /// <summary>
        /// Creates a namespace, which ends with <c>await using</c>. Without a topology it has that of <c>topology.json</c> beside the
        /// tests' assemblies, else one queue, <c>queue.1</c>. Without an emulator it is in the one that all tests share. The token
        /// cancels every method of the namespace, such as a wait or an assertion, but not its end.
        /// </summary>
        public static async Task<ServiceBusEmulator> StartAsync(
            Topology topology = null, EmulatorProcess emulator = null, CancellationToken cancellationToken = default(CancellationToken))
        {
            var declared = (topology ?? Topology.Beside())?.Encoded();
            var process = emulator ?? await EmulatorProcess.Shared.Value.ConfigureAwait(false);
            var created = await process.AskAsync("POST", "namespaces", declared, cancellationToken).ConfigureAwait(false);
            return new ServiceBusEmulator(created) { Emulator = process, cancellation = cancellationToken };
        }

        /// <summary>
        /// Runs a test with a namespace. Its failure is thrown with the timeline of the namespace, and is not hidden by a fault that
        /// has not fired.
        /// </summary>
        public static async Task TestAsync(
            Topology topology, Func<ServiceBusEmulator, Task> test, CancellationToken cancellationToken = default(CancellationToken))
        {
            var servicebus = await StartAsync(topology, null, cancellationToken).ConfigureAwait(false);
            servicebus.endsWithTest = true;
            try
            {
                await test(servicebus).ConfigureAwait(false);
            }
            catch (Exception error)
            {
                servicebus.failed = true;
                var report = await servicebus.EndAsync().ConfigureAwait(false);
                var isCancelled = error is OperationCanceledException && cancellationToken.IsCancellationRequested;
                if (isCancelled || error is ServiceBusAssertionException || NoFailures.Any(error.GetType().Name.Contains))
                {
                    throw;
                }
                throw new ServiceBusAssertionException($"{error.Message}\n{report}", error);
            }
            servicebus.endsWithTest = false;
            await servicebus.DisposeAsync().ConfigureAwait(false);
        }

        /// <summary>Runs a test with the default topology of <see cref="StartAsync"/>.</summary>
        public static Task TestAsync(Func<ServiceBusEmulator, Task> test) => TestAsync(null, test);

        /// <summary>
        /// Ends the namespace; <c>await using</c> calls it. It throws if a fault has not fired, unless an assertion of this namespace
        /// has failed before, and after an internal error of the emulator. In a test of <c>TestAsync</c>, the namespace ends after it.
        /// </summary>
        public async Task DisposeAsync()
        {
            var report = removed || endsWithTest ? null : await EndAsync().ConfigureAwait(false);
            if (report != null && !failed)
            {
                throw new ServiceBusAssertionException(report);
            }
        }

        /// <summary>The time of the namespace's clock.</summary>
        public async Task<DateTimeOffset> NowAsync() =>
            (DateTimeOffset)(await AskAsync("GET", "clock").ConfigureAwait(false)).Element("now");

        /// <summary>Advances the clock, and ends when everything that is due by then has been processed.</summary>
        public Task AdvanceAsync(TimeSpan by) => AskAsync("POST", "clock/advance", new { seconds = by });

        /// <summary>Stops the clock.</summary>
        public Task FreezeAsync() => AskAsync("POST", "clock/freeze");

        /// <summary>Restarts a stopped clock.</summary>
        public Task ResumeAsync() => AskAsync("POST", "clock/resume");

        /// <summary>Makes the clock step to the next deadline whenever the namespace is idle.</summary>
        public Task StepByItselfAsync() => AskAsync("POST", "clock/auto");

        /// <summary>Keeps a clock that steps by itself from stepping during <paramref name="work"/>, for at most ten minutes.</summary>
        public async Task HoldClockAsync(Func<Task> work)
        {
            var hold = await AskAsync("POST", "clock/hold", new { seconds = 600 }).ConfigureAwait(false);
            try
            {
                await work().ConfigureAwait(false);
            }
            finally
            {
                await AskAsync("DELETE", $"clock/hold/{(long)hold.Element("id")}").ConfigureAwait(false);
            }
        }

        /// <summary>Whether the namespace is idle: no message is locked, or can be delivered to a receiver.</summary>
        public async Task<bool> IsIdleAsync() => (await SettledAsync(TimeSpan.Zero).ConfigureAwait(false)).Element("failure") == null;

        /// <summary>Waits until the namespace is idle, by default up to 5 s.</summary>
        public async Task WaitIdleAsync(TimeSpan? within = null) =>
            Check(await SettledAsync(within ?? DefaultTimeout).ConfigureAwait(false));

        /// <summary>Waits until a client receives from a queue or subscription.</summary>
        public Task WaitForReceiverAsync(string entity, TimeSpan? within = null) =>
            AssertAttachedAsync(entity, new Expected { Within = within ?? DefaultTimeout });

        /// <summary>The numbers of messages of an entity, such as <c>orders/$DeadLetterQueue</c>.</summary>
        public async Task<MessageCounts> CountsAsync(string entity) =>
            new MessageCounts(await AskAsync("GET", "counts", query: new { entity = Named(entity) }).ConfigureAwait(false));

        /// <summary>The recorded events of the namespace, of an entity or of a message.</summary>
        public async Task<Timeline> TimelineAsync(string entity = null, string messageId = null) =>
            new Timeline(await AskAsync("GET", "timeline", query: new { entity, message_id = messageId, lines = "true" })
                .ConfigureAwait(false));

        /// <summary>The sessions of a queue or subscription, ordered by their ids.</summary>
        public async Task<IReadOnlyList<Session>> SessionsAsync(string entity)
        {
            var answer = await AskAsync("GET", "sessions", query: new { entity = Named(entity) }).ConfigureAwait(false);
            return answer.Element("sessions").Elements().Select(each => new Session(each)).ToArray();
        }

        /// <summary>Ends the lock of a session as if it had expired.</summary>
        public Task LoseSessionLockAsync(string entity, string session) => AskAsync("POST", "sessions/lose", new { entity, session });

        /// <summary>
        /// How each rule of <c>topic/Subscriptions/name</c> evaluates a message, without sending it, by the rules' names.
        /// </summary>
        /// <param name="subscription">The address of the subscription.</param>
        /// <param name="properties">Application properties: <c>new { price = 12 }</c>, or a dictionary.</param>
        /// <param name="system">Broker properties: <c>new { Label = "order" }</c>.</param>
        public async Task<IReadOnlyDictionary<string, RuleExplanation>> ExplainAsync(
            string subscription, object properties = null, object system = null)
        {
            var message = new[] { new { UserProperties = properties ?? new { }, BrokerProperties = system ?? new { } } };
            var answer = await AskAsync("POST", "explain", message, new { subscription }).ConfigureAwait(false);
            return answer.Element("rules").Elements().Select(each => new RuleExplanation(each)).ToDictionary(each => each.Rule);
        }

        /// <summary>Removes all messages, sessions and recorded events.</summary>
        public Task ResetAsync() => AskAsync("POST", "reset");

        /// <summary>Sends a request for this namespace; parameters of the query that are null are left out.</summary>
        internal Task<XElement> AskAsync(string method, string path, object body = null, object query = null)
        {
            var parameters = Json.Given(query ?? new { }).Select(each => $"{each.Key}={Uri.EscapeDataString((string)each.Value)}");
            var target = $"namespaces/{Name}/{path}" + (query == null ? "" : $"?{string.Join("&", parameters)}");
            return Emulator.AskAsync(method, target, body == null ? null : Json.Write(body), removed ? CancellationToken.None : cancellation);
        }

        /// <summary>Ends the namespace; returns the problem that fails a passed test, or null, or the timeline of a failed one.</summary>
        private async Task<string> EndAsync()
        {
            removed = true;
            try
            {
                return (string)(await AskAsync("POST", "end", new { passed = !failed }).ConfigureAwait(false)).Element("report");
            }
            catch (ServiceBusEmulatorException error) when (failed)
            {
                return error.Message;
            }
        }

        /// <summary>Refuses null, which would be left out of the query.</summary>
        private static string Named(string entity) => entity ?? throw new ArgumentNullException(nameof(entity));

        private Task<XElement> SettledAsync(TimeSpan within) => AskAsync("POST", "settled", new { within, refuse = false });

        private void Check(XElement result)
        {
            if (result.Element("failure") is XElement failure)
            {
                failed = true;
                throw new ServiceBusAssertionException(failure.Value);
            }
        }
    }
}
