using System;
using System.Threading.Tasks;
using Azure.Messaging.ServiceBus;
using ServiceBus.Testing;

/// <summary>
/// What tests of the SDK share. They must not block a thread, because the SDK continues them on the one that reads its connection.
/// </summary>
internal static class Sdk
{
    /// <summary>A client that tries each operation once.</summary>
    internal static ServiceBusClient Client(ServiceBusEmulator bus, ServiceBusClientOptions options = null)
    {
        options ??= new ServiceBusClientOptions();
        options.RetryOptions.MaxRetries = 0;
        return new ServiceBusClient(bus.ConnectionString, options);
    }

    internal static async Task<Exception> ErrorAsync(Func<Task> operation)
    {
        try
        {
            await operation();
        }
        catch (Exception error)
        {
            return error;
        }
        throw new InvalidOperationException("the operation succeeded");
    }

    internal static async Task<ServiceBusFailureReason> ReasonAsync(Func<Task> operation)
    {
        var error = await ErrorAsync(operation);
        return error is ServiceBusException known ? known.Reason : throw error;
    }
}
