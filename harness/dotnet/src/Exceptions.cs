using System;

namespace ServiceBus.Testing
{
    /// <summary>The emulator rejected a request, could not be started, or has ended.</summary>
    public sealed class ServiceBusEmulatorException : Exception
    {
        internal ServiceBusEmulatorException(string message, Exception cause = null) : base(message, cause) { }
    }

    /// <summary>An assertion did not hold, or a test failed; the message has the timeline.</summary>
    public sealed class ServiceBusAssertionException : Exception
    {
        internal ServiceBusAssertionException(string message, Exception cause = null) : base(message, cause) { }
    }
}
