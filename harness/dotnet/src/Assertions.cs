using System;
using System.Collections.Generic;
using System.Threading.Tasks;

namespace ServiceBus.Testing
{
    /// <summary>An assertion did not hold, or a test failed; the message has the timeline.</summary>
    public sealed class ServiceBusAssertionException : Exception, IAssertionException
    {
        internal ServiceBusAssertionException(string message, Exception cause = null) : base(message, cause) { }
    }

    /// <summary>Marks a failed assertion: xunit v3 looks for an interface of this name in any namespace.</summary>
    internal interface IAssertionException { }

    /// <content>
    /// The assertions of the emulator. Each waits until it holds for a queue, a subscription or one of their dead-letter queues,
    /// and otherwise fails with the timeline.
    /// </content>
    public sealed partial class ServiceBusEmulator
    {
        /// <summary>An assertion by its kind in the control API.</summary>
        public async Task AssertAsync(string kind, string entity, Expected expected = null)
        {
            var request = new Dictionary<string, object>((expected ?? new Expected()).Fields) { ["kind"] = kind, ["entity"] = entity };
            Check(await AskAsync("POST", "assertions", request).ConfigureAwait(false));
        }

        /// <summary>Clients receive from the entity, or wait for one of its sessions.</summary>
        public Task AssertAttachedAsync(string entity, Expected expected = null) => AssertAsync("attached", entity, expected);

        /// <summary>The dead-letter queue or the transfer dead-letter queue holds such messages.</summary>
        public Task AssertDeadLetteredAsync(string entity, Expected expected = null) => AssertAsync("dead_lettered", entity, expected);

        /// <summary>Neither of them holds such a message when the namespace is idle.</summary>
        public Task AssertNotDeadLetteredAsync(string entity, Expected expected = null) =>
            AssertAsync("not_dead_lettered", entity, expected);

        /// <summary>Such messages were completed.</summary>
        public Task AssertCompletedAsync(string entity, Expected expected = null) => AssertAsync("completed", entity, expected);

        /// <summary>No such message was completed when the namespace is idle.</summary>
        public Task AssertNotCompletedAsync(string entity, Expected expected = null) => AssertAsync("not_completed", entity, expected);

        /// <summary>Such messages were delivered to receivers.</summary>
        public Task AssertDeliveredAsync(string entity, Expected expected = null) => AssertAsync("delivered", entity, expected);

        /// <summary>No such message was delivered when the namespace is idle.</summary>
        public Task AssertNotDeliveredAsync(string entity, Expected expected = null) => AssertAsync("not_delivered", entity, expected);

        /// <summary>Deliveries were abandoned.</summary>
        public Task AssertAbandonedAsync(string entity, Expected expected = null) => AssertAsync("abandoned", entity, expected);

        /// <summary>No delivery was abandoned when the namespace is idle.</summary>
        public Task AssertNotAbandonedAsync(string entity, Expected expected = null) => AssertAsync("not_abandoned", entity, expected);

        /// <summary>Locks were renewed.</summary>
        public Task AssertLockRenewedAsync(string entity, Expected expected = null) => AssertAsync("lock_renewed", entity, expected);

        /// <summary>No lock was renewed when the namespace is idle.</summary>
        public Task AssertLockNotRenewedAsync(string entity, Expected expected = null) => AssertAsync("lock_not_renewed", entity, expected);

        /// <summary>The entity holds such deferred messages.</summary>
        public Task AssertDeferredAsync(string entity, Expected expected = null) => AssertAsync("deferred", entity, expected);

        /// <summary>The entity holds no such deferred message when the namespace is idle.</summary>
        public Task AssertNotDeferredAsync(string entity, Expected expected = null) => AssertAsync("not_deferred", entity, expected);

        /// <summary>The entity holds messages that are scheduled for this time.</summary>
        public Task AssertScheduledAsync(string entity, Expected expected = null) => AssertAsync("scheduled", entity, expected);

        /// <summary>The entity holds no such scheduled message when the namespace is idle.</summary>
        public Task AssertNotScheduledAsync(string entity, Expected expected = null) => AssertAsync("not_scheduled", entity, expected);

        /// <summary>Such messages expired, and were discarded or dead-lettered.</summary>
        public Task AssertExpiredAsync(string entity, Expected expected = null) => AssertAsync("expired", entity, expected);

        /// <summary>No such message expired when the namespace is idle.</summary>
        public Task AssertNotExpiredAsync(string entity, Expected expected = null) => AssertAsync("not_expired", entity, expected);

        /// <summary>Such messages were forwarded to another entity.</summary>
        public Task AssertForwardedAsync(string entity, Expected expected = null) => AssertAsync("forwarded", entity, expected);

        /// <summary>No such message was forwarded when the namespace is idle.</summary>
        public Task AssertNotForwardedAsync(string entity, Expected expected = null) => AssertAsync("not_forwarded", entity, expected);

        /// <summary>The greatest number of sends that waited for their outcomes at the same time.</summary>
        public Task AssertUnsettledSendsAsync(string entity, Expected expected = null) => AssertAsync("unsettled_sends", entity, expected);

        /// <summary>The entity holds exactly these numbers of messages.</summary>
        public Task AssertMessageCountAsync(string entity, Expected expected) => AssertAsync("message_count", entity, expected);

        /// <summary>The session holds exactly these messages, in this order.</summary>
        public Task AssertSessionOrderAsync(string entity, Expected expected) => AssertAsync("session_order", entity, expected);

        /// <summary>The session has this state.</summary>
        public Task AssertSessionStateAsync(string entity, Expected expected) => AssertAsync("session_state", entity, expected);

        /// <summary>The entity holds no messages in any state; its dead-letter queue is not part of it.</summary>
        public Task AssertEmptyAsync(string entity, Expected expected = null) => AssertAsync("empty", entity, expected);
    }
}
