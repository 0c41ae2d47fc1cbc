global using System;
global using System.Collections.Generic;
global using System.Linq;
global using System.Threading.Tasks;
global using Azure.Messaging.ServiceBus;
global using static Expect;
global using static Messages;
global using Message = Azure.Messaging.ServiceBus.ServiceBusMessage;
global using Reason = Azure.Messaging.ServiceBus.ServiceBusFailureReason;
global using Received = Azure.Messaging.ServiceBus.ServiceBusReceivedMessage;
global using Receiver = Azure.Messaging.ServiceBus.ServiceBusReceiver;

using System.Collections;
using System.IO;
using System.Reflection;
using System.Security.Cryptography.X509Certificates;
using System.Text.Json;

/// <summary>
/// Runs named cases against the emulator through the .NET SDK, in one process.
///
/// Every line of standard input is a request, <c>{"id": 1, "case": "locks.renews", "environment": {…}}</c>, and is answered by
/// a line on standard output, <c>{"id": 1, "passed": true, "output": ""}</c>. A case <c>locks.loses_lock</c> is the method
/// <c>LosesLock</c> of the class <c>Locks</c>.
/// The environment is a case's own: SERVICEBUS_CONNECTION_STRING, SERVICEBUS_CONTROL_URL (the namespace's part of the control
/// API), SERVICEBUS_EXPIRY, SERVICEBUS_LOCKS_ON_DETACH, SERVICEBUS_CA_FILE and SERVICEBUS_TRANSPORT with its companion; for
/// administration clients also SERVICEBUS_ADMIN_CONNECTION_STRING. The requests decide how many cases run side by side. The
/// process ends with its standard input. With arguments it is a process within a test (<c>Detach</c>, <c>Handshake</c>). No case
/// blocks a thread, since the SDK continues it on the one that reads its connection.
/// </summary>
internal static class Program
{
    private static readonly TimeSpan Deadline = TimeSpan.FromSeconds(180);

    private static async Task Main(string[] arguments)
    {
        if (arguments.Length == 4)
        {
            await Handshake.Perform(arguments[0], arguments[1], arguments[2], arguments[3]);
            return;
        }
        if (arguments.Length == 1)
        {
            var variables = Environment.GetEnvironmentVariables().Cast<DictionaryEntry>();
            await Detach.Die(new Bus(variables.ToDictionary(each => $"{each.Key}", each => $"{each.Value}")), arguments[0]);
        }
        var answers = Console.Out;
        // Other output must not be mistaken for a response.
        Console.SetOut(Console.Error);
        for (var isTrusted = false; await Console.In.ReadLineAsync() is { } line; isTrusted = true)
        {
            var request = JsonDocument.Parse(line).RootElement;
            if (!isTrusted)
            {
                Trust(request.GetProperty("environment").GetProperty("SERVICEBUS_CA_FILE").GetString());
            }
            _ = Task.Run(() => AnswerAsync(request, answers));
        }
    }

    /// <summary>
    /// Adds the authority of all namespaces to those that this user trusts, which are files below the directory HOME. A client
    /// has a callback for certificates, but does not ask it over WebSocket.
    /// </summary>
    private static void Trust(string file)
    {
        using var store = new X509Store(StoreName.Root, StoreLocation.CurrentUser, OpenFlags.ReadWrite);
        store.Add(X509CertificateLoader.LoadCertificateFromFile(file));
    }

    private static async Task AnswerAsync(JsonElement request, TextWriter answers)
    {
        var output = "";
        try
        {
            var environment = request.GetProperty("environment").Deserialize<Dictionary<string, string>>();
            var running = RunAsync(Find(request.GetProperty("case").GetString()), environment);
            await running.WaitAsync(Deadline);
        }
        catch (Exception error)
        {
            output = $"{error}";
        }
        var id = request.GetProperty("id").GetInt32();
        answers.WriteLine(JsonSerializer.Serialize(new { id, passed = output == "", output }));
    }

    private static async Task RunAsync(MethodInfo function, Dictionary<string, string> environment)
    {
        await using var bus = new Bus(environment);
        await (Task)function.Invoke(null, BindingFlags.DoNotWrapExceptions, null, new object[] { bus }, null);
    }

    private static MethodInfo Find(string name)
    {
        var words = name.Split('.').Select(part => string.Concat(part.Split('_').Select(word => char.ToUpper(word[0]) + word[1..])));
        var method = Type.GetType(words.First())?.GetMethod(words.Last(), BindingFlags.Static | BindingFlags.NonPublic);
        return method ?? throw new Failure($"there is no case {name}");
    }
}
