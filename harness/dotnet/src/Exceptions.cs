using System;

namespace ServiceBus.Testing
{
    /// <summary>What the emulator refused or could not do, in a sentence.</summary>
    public sealed class ServiceBusEmulatorException : Exception
    {
        internal ServiceBusEmulatorException(string message, Exception cause = null) : base(message, cause) { }
    }

    /// <summary>Something is not as a test says, with the timeline of what happened instead.</summary>
    public sealed class ServiceBusAssertionException : Exception
    {
        internal ServiceBusAssertionException(string message, Exception cause = null) : base(message, cause) { }
    }
}
