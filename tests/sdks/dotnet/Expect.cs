using System.Collections;
using System.Runtime.CompilerServices;
using System.Text.Json;

/// <summary>The failure of a case.</summary>
internal sealed class Failure : Exception
{
    internal Failure(string text)
        : base(text)
    {
    }
}

/// <summary>Assertions.</summary>
internal static class Expect
{
    /// <summary>Long enough for a busy machine, short enough to detect a hang.</summary>
    internal static readonly TimeSpan Timeout = TimeSpan.FromSeconds(45);

    /// <summary>The errors that are worth another attempt (service-bus-messaging-exceptions).</summary>
    private static readonly Reason[] Transient = { Reason.ServiceTimeout, Reason.ServiceBusy, Reason.ServiceCommunicationProblem };

    /// <summary>Fails with both values if they differ.</summary>
    internal static void Equal(string what, object actual, object expected)
    {
        if (Shown(actual) != Shown(expected))
        {
            throw new Failure($"{what}: expected {Shown(expected)}, got {Shown(actual)}");
        }
    }

    internal static void True(string what, bool holds) => Equal($"whether {what}", holds, true);

    /// <summary>The SDK's error of this reason, with this text and the right <c>IsTransient</c>.</summary>
    internal static async Task<ServiceBusException> Fails(Reason reason, Task operation, string text = "")
    {
        var error = await Fails<ServiceBusException>(operation, text);
        Equal($"reason of {error}", error.Reason, reason);
        Equal($"whether {error} is transient", error.IsTransient, Transient.Contains(reason));
        return error;
    }

    internal static Task IsMissing(Task operation) => Fails(Reason.MessagingEntityNotFound, operation);

    internal static Task IsDisabled(Task operation) => Fails(Reason.MessagingEntityDisabled, operation);

    /// <summary>An error of this type, with this text.</summary>
    internal static async Task<T> Fails<T>(Task operation, string text = "")
        where T : Exception
    {
        Exception outcome = null;
        try
        {
            await operation;
        }
        catch (Exception error)
        {
            outcome = error;
        }
        if (outcome is T expected && expected.Message.Contains(text))
        {
            return expected;
        }
        throw new Failure($"expected a {typeof(T).Name} with the text \"{text}\", got {outcome?.ToString() ?? "no error"}");
    }

    /// <summary>Asserts that a lock of one minute ends between 30 s and a minute from now.</summary>
    internal static void FreshLock(DateTimeOffset until)
    {
        var left = until - DateTimeOffset.UtcNow;
        True($"a fresh lock of one minute has {left} left by the client's clock", left.TotalSeconds is > 30 and <= 61);
    }

    /// <summary>Asserts a time, with a tolerance for the duration of the case.</summary>
    internal static void Close(string what, DateTimeOffset actual, DateTimeOffset expected) =>
        True($"{what} is about {expected:O}: {actual:O}", (actual - expected).Duration().TotalSeconds <= 15);

    /// <summary>Waits until a condition holds.</summary>
    internal static async Task Until(string what, Func<bool> holds)
    {
        for (var end = DateTime.UtcNow + Timeout; !holds(); await Task.Delay(20))
        {
            True($"{what} came in time", DateTime.UtcNow < end);
        }
    }

    /// <summary>The values of application properties are shown with their types.</summary>
    private static string Shown(object value) => value switch
    {
        null => "null",
        string text => JsonSerializer.Serialize(text),
        byte[] bytes => Convert.ToHexString(bytes),
        DateTimeOffset time => $"{time:O}",
        BinaryData data => Shown(data.ToArray()),
        KeyValuePair<string, object> property => $"{property.Key}: {Shown(property.Value)} ({property.Value?.GetType().Name})",
        IOrderedEnumerable<KeyValuePair<string, object>> properties => $"[{string.Join(", ", properties.Select(each => Shown(each)))}]",
        IEnumerable<KeyValuePair<string, object>> properties => Shown(properties.OrderBy(each => each.Key)),
        IEnumerable items => $"[{string.Join(", ", items.Cast<object>().Select(Shown))}]",
        ITuple tuple => $"({string.Join(", ", Enumerable.Range(0, tuple.Length).Select(index => Shown(tuple[index])))})",
        _ => FormattableString.Invariant($"{value}"),
    };
}
