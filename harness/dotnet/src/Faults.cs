using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>Faults that a test injects into operations of the clients of a namespace.</summary>
    /// <remarks>A fault that has not fired when the namespace ends fails the test, unless it was removed.</remarks>
    public sealed class Faults
    {
        private readonly ServiceBusEmulator servicebus;

        internal Faults(ServiceBusEmulator servicebus) => this.servicebus = servicebus;

        /// <summary>
        /// Selects operations of clients: <c>On("complete", entity: "orders", nth: 2)</c>. The parameters are the fields of the
        /// control API; <paramref name="property"/> is as in <c>new { name = "color", value = "red" }</c> and
        /// <paramref name="random"/> as in <c>new { seed = 17, probability = 0.05 }</c>.
        /// </summary>
        public Operations On(
            string operation, string entity = null, string messageId = null, string sessionId = null,
            int? nth = null, int? every = null, int? times = null, int? delivery = null, long? sequenceNumber = null,
            string client = null, string party = null, string name = null, object property = null, object random = null,
            [CallerFilePath] string file = "", [CallerLineNumber] int line = 0) =>
            new Operations(servicebus, Json.Given(new
            {
                operation, entity, message_id = messageId, session_id = sessionId, nth, every, times, delivery,
                sequence_number = sequenceNumber, client, party, name, property, random, written_at = $"{file}:{line}",
            }));

        /// <summary>Ends all locks and links, as when the service is updated.</summary>
        public Task ServiceUpdateAsync() => servicebus.AskAsync("POST", "service-update");
    }

    /// <summary>Operations that a fault applies to. Each method adds a fault with one effect.</summary>
    public sealed class Operations
    {
        private readonly ServiceBusEmulator servicebus;
        private readonly Dictionary<string, object> which;

        internal Operations(ServiceBusEmulator servicebus, Dictionary<string, object> which)
        {
            this.servicebus = servicebus;
            this.which = which;
        }

        /// <summary>
        /// Adds a fault with any effect of the control API: <c>ApplyAsync("hold-back", new { behind = 2 })</c>.
        /// </summary>
        public async Task<Fault> ApplyAsync(string effect, object details = null)
        {
            var effects = new Dictionary<string, object> { [effect] = Json.Given(details ?? new { }) };
            var request = new Dictionary<string, object>(which) { ["effect"] = effects };
            var added = await servicebus.AskAsync("POST", "faults", request).ConfigureAwait(false);
            return new Fault(method => servicebus.AskAsync(method, $"faults/{(long)added.Element("id")}"));
        }

        /// <summary>The operation succeeds, and the client gets no reply.</summary>
        public Task<Fault> LoseReplyAsync() => ApplyAsync("lose-reply");

        /// <summary>The operation fails with this AMQP error condition.</summary>
        public Task<Fault> RejectAsync(string condition, string description = null) => ApplyAsync("reject", new { condition, description });

        /// <summary>The operation fails with <c>com.microsoft:server-busy</c>.</summary>
        public Task<Fault> ServerBusyAsync() => RejectAsync("com.microsoft:server-busy");

        /// <summary>The response to a request has this status.</summary>
        public Task<Fault> AnswerAsync(int status, string condition = null, string description = null) =>
            ApplyAsync("answer", new { status, condition, description });

        /// <summary>The link is detached <c>before</c> the operation, or <c>after</c> it.</summary>
        public Task<Fault> DetachAsync(string condition = "amqp:link:detach-forced", string when = "before") =>
            ApplyAsync("detach", new { condition, when });

        /// <summary>The connection ends without a close frame, <c>before</c> the operation or <c>after</c> it.</summary>
        public Task<Fault> DropConnectionAsync(string when = "before") => ApplyAsync("drop", new { when });

        /// <summary>The operation is delayed, by the <c>virtual</c> clock or the <c>real</c> one.</summary>
        public Task<Fault> DelayAsync(TimeSpan by, string clock = "virtual") => ApplyAsync("delay", new { seconds = by, clock });

        /// <summary>The lock ends: before a settlement or renewal, after a delivery.</summary>
        public Task<Fault> LoseLockAsync() => ApplyAsync("lose-lock");

        /// <summary>The lock of the session ends.</summary>
        public Task<Fault> LoseSessionLockAsync() => ApplyAsync("lose-session-lock");

        /// <summary>The completion succeeds for the client, but the message is delivered again.</summary>
        public Task<Fault> RedeliverAsync() => ApplyAsync("deliver-twice");
    }

    /// <summary>A fault that was added to a namespace.</summary>
    public sealed class Fault
    {
        private readonly Func<string, Task<XElement>> ask;

        internal Fault(Func<string, Task<XElement>> ask) => this.ask = ask;

        /// <summary>How often the fault has fired.</summary>
        public async Task<long> HitsAsync() => (long)(await ask("GET").ConfigureAwait(false)).Element("hits");

        /// <summary>Removes the fault, which then does not have to fire.</summary>
        public Task RemoveAsync() => ask("DELETE");
    }
}
