using System.Collections.Generic;
using System.Threading.Tasks;

namespace ServiceBus.Testing
{
    /// <content>
    /// The assertions of the emulator. Each waits until it is true of a queue, a subscription or one of their dead-letter queues, and
    /// fails with what happened instead.
    /// </content>
    public sealed partial class ServiceBusEmulator
    {
        /// <summary>An assertion of the control API, by the name of its kind.</summary>
        public async Task AssertAsync(string kind, string entity, Expected expected = null)
        {
            var request = new Dictionary<string, object>(expected?.Fields ?? new Dictionary<string, object>())
            {
                ["kind"] = kind,
                ["entity"] = entity,
            };
            var answer = await AskAsync("POST", "assertions", request).ConfigureAwait(false);
            if (answer.Text("holds") != "true")
            {
                throw Failed(answer.Text("failure"));
            }
        }

        /// <summary>Clients of the code under test receive from it.</summary>
        public Task AssertAttachedAsync(string entity, Expected expected = null) => AssertAsync("attached", entity, expected);

        /// <summary>Such messages are in its dead-letter queue, or in the transfer one.</summary>
        public Task AssertDeadLetteredAsync(string entity, Expected expected = null) => AssertAsync("dead_lettered", entity, expected);

        /// <summary>No such message is, once the namespace is idle.</summary>
        public Task AssertNotDeadLetteredAsync(string entity, Expected expected = null) =>
            AssertAsync("not_dead_lettered", entity, expected);

        /// <summary>Such messages were completed.</summary>
        public Task AssertCompletedAsync(string entity, Expected expected = null) => AssertAsync("completed", entity, expected);

        /// <summary>None was, once the namespace is idle.</summary>
        public Task AssertNotCompletedAsync(string entity, Expected expected = null) => AssertAsync("not_completed", entity, expected);

        /// <summary>Such messages were delivered to receivers.</summary>
        public Task AssertDeliveredAsync(string entity, Expected expected = null) => AssertAsync("delivered", entity, expected);

        /// <summary>None was, once the namespace is idle.</summary>
        public Task AssertNotDeliveredAsync(string entity, Expected expected = null) => AssertAsync("not_delivered", entity, expected);

        /// <summary>Deliveries were abandoned.</summary>
        public Task AssertAbandonedAsync(string entity, Expected expected = null) => AssertAsync("abandoned", entity, expected);

        /// <summary>None was, once the namespace is idle.</summary>
        public Task AssertNotAbandonedAsync(string entity, Expected expected = null) => AssertAsync("not_abandoned", entity, expected);

        /// <summary>Locks were renewed.</summary>
        public Task AssertLockRenewedAsync(string entity, Expected expected = null) => AssertAsync("lock_renewed", entity, expected);

        /// <summary>None was, once the namespace is idle.</summary>
        public Task AssertLockNotRenewedAsync(string entity, Expected expected = null) => AssertAsync("lock_not_renewed", entity, expected);

        /// <summary>It holds such deferred messages.</summary>
        public Task AssertDeferredAsync(string entity, Expected expected = null) => AssertAsync("deferred", entity, expected);

        /// <summary>It holds none, once the namespace is idle.</summary>
        public Task AssertNotDeferredAsync(string entity, Expected expected = null) => AssertAsync("not_deferred", entity, expected);

        /// <summary>It holds messages that are scheduled for this time.</summary>
        public Task AssertScheduledAsync(string entity, Expected expected = null) => AssertAsync("scheduled", entity, expected);

        /// <summary>It holds none, once the namespace is idle.</summary>
        public Task AssertNotScheduledAsync(string entity, Expected expected = null) => AssertAsync("not_scheduled", entity, expected);

        /// <summary>Such messages expired, dropped or dead-lettered.</summary>
        public Task AssertExpiredAsync(string entity, Expected expected = null) => AssertAsync("expired", entity, expected);

        /// <summary>None did, once the namespace is idle.</summary>
        public Task AssertNotExpiredAsync(string entity, Expected expected = null) => AssertAsync("not_expired", entity, expected);

        /// <summary>Such messages were forwarded to another queue.</summary>
        public Task AssertForwardedAsync(string entity, Expected expected = null) => AssertAsync("forwarded", entity, expected);

        /// <summary>None was, once the namespace is idle.</summary>
        public Task AssertNotForwardedAsync(string entity, Expected expected = null) => AssertAsync("not_forwarded", entity, expected);

        /// <summary>So many sends to it ever waited for their outcome at once.</summary>
        public Task AssertUnsettledSendsAsync(string entity, Expected expected = null) => AssertAsync("unsettled_sends", entity, expected);

        /// <summary>The numbers of its messages are exactly these.</summary>
        public Task AssertMessageCountAsync(string entity, Expected expected) => AssertAsync("message_count", entity, expected);

        /// <summary>The session holds exactly these messages, in this order.</summary>
        public Task AssertSessionOrderAsync(string entity, Expected expected) => AssertAsync("session_order", entity, expected);

        /// <summary>This is kept with the session.</summary>
        public Task AssertSessionStateAsync(string entity, Expected expected) => AssertAsync("session_state", entity, expected);

        /// <summary>It holds nothing.</summary>
        public Task AssertEmptyAsync(string entity, Expected expected = null) => AssertAsync("empty", entity, expected);
    }
}
