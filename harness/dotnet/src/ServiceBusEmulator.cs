using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>
    /// A namespace of a test's own: what an SDK needs to reach it, its time, its faults, and what happened in it.
    /// </summary>
    public sealed partial class ServiceBusEmulator
    {
        private static readonly TimeSpan UnlessSaid = TimeSpan.FromSeconds(5);

        /// <summary>How frameworks call what a test throws that has not failed.</summary>
        private static readonly string[] NoFailures = { "Ignore", "Inconclusive", "Skip", "Success" };

        private readonly Control control;
        private readonly string path;
        private bool failed;
        private bool removed;

        private ServiceBusEmulator(EmulatorProcess emulator, XElement made)
        {
            Name = made.Text("name");
            Emulator = emulator;
            control = emulator.Control;
            path = $"namespaces/{Name}";
            ConnectionString = made.Text("connection_string");
            AdministrationConnectionString = made.Text("admin_connection_string");
            TlsConnectionString = made.Text("tls_connection_string");
            Faults = new Faults(control, path);
        }

        /// <summary>The name of the namespace.</summary>
        public string Name { get; }

        /// <summary>The emulator that it is in.</summary>
        public EmulatorProcess Emulator { get; }

        /// <summary>What <c>ServiceBusClient</c> takes.</summary>
        public string ConnectionString { get; }

        /// <summary>What <c>ServiceBusAdministrationClient</c> takes, 7.20.1 and later.</summary>
        public string AdministrationConnectionString { get; }

        /// <summary>The connection string for TLS, as in production.</summary>
        public string TlsConnectionString { get; }

        /// <summary>The file that clients over TLS must trust.</summary>
        public string CaCertificate => Emulator.Ready.Text("ca_certificate");

        /// <summary>Operations that are to go wrong.</summary>
        public Faults Faults { get; }

        /// <summary>
        /// A namespace that ends with <c>await using</c>. Without a topology it holds what <c>topology.json</c> beside the tests'
        /// assemblies declares, else one queue, <c>queue.1</c>. Without an emulator of your own it is in the one that all tests share.
        /// </summary>
        public static async Task<ServiceBusEmulator> StartAsync(Topology topology = null, EmulatorProcess emulator = null)
        {
            var declared = (topology ?? Topology.Beside())?.Encoded();
            var process = emulator ?? await EmulatorProcess.SharedAsync().ConfigureAwait(false);
            return new ServiceBusEmulator(process, await process.Control.AskAsync("POST", "namespaces", declared).ConfigureAwait(false));
        }

        /// <summary>
        /// Runs a test with a namespace. Whatever it fails with is told with what happened in the namespace, and not hidden by a
        /// fault that did not fire.
        /// </summary>
        public static async Task TestAsync(Topology topology, Func<ServiceBusEmulator, Task> test)
        {
            var servicebus = await StartAsync(topology).ConfigureAwait(false);
            try
            {
                await test(servicebus).ConfigureAwait(false);
            }
            catch (Exception error)
            {
                servicebus.failed = true;
                var report = await servicebus.EndAsync().ConfigureAwait(false);
                if (error is ServiceBusAssertionException || NoFailures.Any(error.GetType().Name.Contains))
                {
                    throw;
                }
                throw new ServiceBusAssertionException($"{error.Message}\n{report}", error);
            }
            await servicebus.DisposeAsync().ConfigureAwait(false);
        }

        /// <summary>The same with the topology of <see cref="StartAsync"/> without one.</summary>
        public static Task TestAsync(Func<ServiceBusEmulator, Task> test) => TestAsync(null, test);

        /// <summary>
        /// Ends the namespace; <c>await using</c> calls it. It throws for a fault that has not fired, unless an assertion of this
        /// namespace has failed before, and for a failure inside the emulator.
        /// </summary>
        public async Task DisposeAsync()
        {
            if (removed)
            {
                return;
            }
            var report = await EndAsync().ConfigureAwait(false);
            if (report != null && !failed)
            {
                throw new ServiceBusAssertionException(report);
            }
        }

        /// <summary>What the clock of the namespace shows.</summary>
        public async Task<DateTimeOffset> NowAsync() => (await AskAsync("GET", "clock").ConfigureAwait(false)).Time("now").Value;

        /// <summary>Moves the clock; all that falls due on the way has happened when this is done.</summary>
        public Task AdvanceAsync(TimeSpan by) => AskAsync("POST", "clock/advance", new { seconds = by });

        /// <summary>Stops the clock.</summary>
        public Task FreezeAsync() => AskAsync("POST", "clock/freeze");

        /// <summary>Lets a stopped clock run on.</summary>
        public Task ResumeAsync() => AskAsync("POST", "clock/resume");

        /// <summary>From now on the clock steps to the next deadline whenever the namespace is idle.</summary>
        public Task StepByItselfAsync() => AskAsync("POST", "clock/auto");

        /// <summary>Whether nothing is left to deliver to a receiver, and no message is locked.</summary>
        public async Task<bool> IsIdleAsync() => await BusyAsync(TimeSpan.Zero).ConfigureAwait(false) == null;

        /// <summary>Waits until the namespace is idle, up to 5 s unless it is said how long.</summary>
        public async Task WaitIdleAsync(TimeSpan? within = null)
        {
            var busy = await BusyAsync(within ?? UnlessSaid).ConfigureAwait(false);
            if (busy != null)
            {
                throw Failed(busy);
            }
        }

        /// <summary>Waits until a client receives from a queue or subscription.</summary>
        public Task WaitForReceiverAsync(string entity, TimeSpan? within = null) =>
            AssertAttachedAsync(entity, new Expected { Within = within ?? UnlessSaid });

        /// <summary>How many messages there are in an entity, such as <c>orders/$DeadLetterQueue</c>.</summary>
        public async Task<MessageCounts> CountsAsync(string entity) =>
            new MessageCounts(await AskAsync("GET", Control.Query("counts", "entity", entity)).ConfigureAwait(false));

        /// <summary>What happened in the namespace, to an entity or to a message, as far as the record goes back.</summary>
        public async Task<Timeline> TimelineAsync(string entity = null, string messageId = null)
        {
            var query = Control.Query("timeline", "entity", entity, "message_id", messageId, "lines", "true");
            return new Timeline(await AskAsync("GET", query).ConfigureAwait(false));
        }

        /// <summary>The sessions of a queue or subscription, ordered by their ids.</summary>
        public async Task<IReadOnlyList<Session>> SessionsAsync(string entity)
        {
            var answer = await AskAsync("GET", Control.Query("sessions", "entity", entity)).ConfigureAwait(false);
            return answer.Items("sessions").Select(each => new Session(each)).ToArray();
        }

        /// <summary>Ends the lock of a session as if its time had run out.</summary>
        public Task LoseSessionLockAsync(string entity, string session) => AskAsync("POST", "sessions/lose", new { entity, session });

        /// <summary>
        /// What each rule of <c>topic/Subscriptions/name</c> says of a message that is not sent, by the rules' names.
        /// </summary>
        /// <param name="subscription">The address of the subscription.</param>
        /// <param name="properties">Those of the application: <c>new { price = 12 }</c>, or a dictionary.</param>
        /// <param name="system">Those of the service under its names: <c>new { Label = "order" }</c>.</param>
        public async Task<IReadOnlyDictionary<string, RuleExplanation>> ExplainAsync(
            string subscription, object properties = null, object system = null)
        {
            var message = new[] { new { UserProperties = properties ?? new { }, BrokerProperties = system ?? new { } } };
            var query = Control.Query("explain", "subscription", subscription);
            var answer = await AskAsync("POST", query, message).ConfigureAwait(false);
            return answer.Items("rules").Select(each => new RuleExplanation(each)).ToDictionary(each => each.Rule);
        }

        /// <summary>Removes all messages, sessions and the record.</summary>
        public Task ResetAsync() => AskAsync("POST", "reset");

        /// <summary>Ends the namespace: why a test that has passed fails nevertheless, or null; what happened in another.</summary>
        private async Task<string> EndAsync()
        {
            removed = true;
            try
            {
                return (await AskAsync("POST", "end", new { passed = !failed }).ConfigureAwait(false)).Text("report");
            }
            catch (ServiceBusEmulatorException error) when (failed)
            {
                return error.Message;
            }
        }

        /// <summary>What keeps the namespace from being idle after this time, or null.</summary>
        private async Task<string> BusyAsync(TimeSpan within) =>
            (await AskAsync("POST", "settled", new { within, refuse = false }).ConfigureAwait(false)).Text("failure");

        private Task<XElement> AskAsync(string method, string what, object body = null) => control.AskAsync(method, $"{path}/{what}", body);

        private ServiceBusAssertionException Failed(string message)
        {
            failed = true;
            return new ServiceBusAssertionException(message);
        }
    }
}
