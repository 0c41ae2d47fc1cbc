using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;
using System.Xml.Linq;

namespace ServiceBus.Testing
{
    /// <summary>The faults of a namespace: an operation of a client goes wrong where the test says so.</summary>
    /// <remarks>One that has not fired when the namespace ends fails the test, unless it was removed.</remarks>
    public sealed class Faults
    {
        private readonly Control control;
        private readonly string path;

        internal Faults(Control control, string path)
        {
            this.control = control;
            this.path = path;
        }

        /// <summary>
        /// Operations of clients: <c>On("complete", entity: "orders", nth: 2)</c>. Operation and what narrows it are those of the
        /// control API; <paramref name="property"/> is as in <c>new { name = "color", value = "red" }</c> and
        /// <paramref name="random"/> as in <c>new { seed = 17, probability = 0.05 }</c>.
        /// </summary>
        public Operations On(
            string operation,
            string entity = null,
            string messageId = null,
            string sessionId = null,
            int? nth = null,
            int? every = null,
            int? times = null,
            int? delivery = null,
            long? sequenceNumber = null,
            string client = null,
            string party = null,
            string name = null,
            object property = null,
            object random = null,
            [CallerFilePath] string file = "",
            [CallerLineNumber] int line = 0)
        {
            return new Operations(this, Json.Members(new
            {
                operation, entity, message_id = messageId, session_id = sessionId, nth, every, times, delivery,
                sequence_number = sequenceNumber, client, party, name, property, random, written_at = $"{file}:{line}",
            }));
        }

        /// <summary>Ends all locks and links, as when the service is updated.</summary>
        public Task ServiceUpdateAsync() => control.AskAsync("POST", $"{path}/service-update");

        internal async Task<Fault> AddAsync(object request)
        {
            var made = await control.AskAsync("POST", $"{path}/faults", request).ConfigureAwait(false);
            return new Fault(method => control.AskAsync(method, $"{path}/faults/{made.Number("id")}"));
        }
    }

    /// <summary>Operations that are to go wrong. Each method scripts what becomes of them.</summary>
    public sealed class Operations
    {
        private readonly Faults faults;
        private readonly IDictionary<string, object> which;

        internal Operations(Faults faults, IDictionary<string, object> which)
        {
            this.faults = faults;
            this.which = which;
        }

        /// <summary>
        /// Any effect of the control API, by its name: <c>ApplyAsync("hold-back", new { behind = 2 })</c>.
        /// </summary>
        public Task<Fault> ApplyAsync(string effect, object details = null)
        {
            var given = Json.Members(details ?? new { }).Where(each => each.Value != null).ToDictionary(each => each.Key, each => each.Value);
            return faults.AddAsync(new Dictionary<string, object>(which)
            {
                ["effect"] = new Dictionary<string, object> { [effect] = given },
            });
        }

        /// <summary>It happens, and the client gets no reply.</summary>
        public Task<Fault> LoseReplyAsync() => ApplyAsync("lose-reply");

        /// <summary>It does not happen, and the client gets the AMQP condition.</summary>
        public Task<Fault> RejectAsync(string condition, string description = null) => ApplyAsync("reject", new { condition, description });

        /// <summary>It does not happen, and the client is told to wait.</summary>
        public Task<Fault> ServerBusyAsync() => RejectAsync("com.microsoft:server-busy");

        /// <summary>A request is answered with this status.</summary>
        public Task<Fault> AnswerAsync(int status, string condition = null, string description = null) =>
            ApplyAsync("answer", new { status, condition, description });

        /// <summary>The link is closed <c>before</c> it happens, or <c>after</c>.</summary>
        public Task<Fault> DetachAsync(string condition = "amqp:link:detach-forced", string when = "before") =>
            ApplyAsync("detach", new { condition, when });

        /// <summary>The connection ends without a close frame <c>before</c> it happens, or <c>after</c>.</summary>
        public Task<Fault> DropConnectionAsync(string when = "before") => ApplyAsync("drop", new { when });

        /// <summary>It happens later, by the <c>virtual</c> clock or the <c>real</c> one.</summary>
        public Task<Fault> DelayAsync(TimeSpan by, string clock = "virtual") => ApplyAsync("delay", new { seconds = by, clock });

        /// <summary>The lock ends: before a settlement or renewal, after a delivery.</summary>
        public Task<Fault> LoseLockAsync() => ApplyAsync("lose-lock");

        /// <summary>The lock of the session ends.</summary>
        public Task<Fault> LoseSessionLockAsync() => ApplyAsync("lose-session-lock");

        /// <summary>The client is told that its completion has happened, and the message is delivered again.</summary>
        public Task<Fault> RedeliverAsync() => ApplyAsync("deliver-twice");
    }

    /// <summary>A fault that was scripted.</summary>
    public sealed class Fault
    {
        private readonly Func<string, Task<XElement>> ask;

        internal Fault(Func<string, Task<XElement>> ask) => this.ask = ask;

        /// <summary>How often it fired.</summary>
        public async Task<long> HitsAsync() => (await ask("GET").ConfigureAwait(false)).Number("hits");

        /// <summary>Takes it out; it need not have fired.</summary>
        public Task RemoveAsync() => ask("DELETE");
    }
}
