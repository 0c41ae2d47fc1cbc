using System;
using System.Collections.Generic;
using System.Numerics;
using System.Threading.Tasks;
using Azure.Messaging.ServiceBus;
using NUnit.Framework;
using ServiceBus.Testing;

/// <content>Values of .NET in requests.</content>
public partial class Namespaces
{
    [Test]
    public async Task TextsReachTheEmulatorAndReturnUnchanged()
    {
        var text = "\"\\/\b\f\n\r\t\u0001\u007f é€😀<&>";
        var subscription = new Subscription("s") { Rules = { new Rule("label") { Correlation = new { Label = text } } } };
        var topology = new Topology { Topics = { new Topic("t") { Subscriptions = { subscription } } } };
        await With(topology, async servicebus =>
        {
            var rules = await servicebus.ExplainAsync("t/Subscriptions/s", null, new { Label = "another" });
            Assert.That(rules["label"].Expression, Is.EqualTo($"sys.Label = '{text}' (a string)"));
        });
    }

    [Test]
    public async Task ValuesOfDotNetReachTheEmulatorAsJson()
    {
        var values = new
        {
            id = new Guid("0123abcd-0000-0000-0000-000000000017"),
            day = DayOfWeek.Friday,
            grade = 'a',
            ratio = 0.1 + 0.2,
            due = new DateTime(2030, 1, 2, 3, 4, 5, DateTimeKind.Utc),
            page = new Uri("http://orders/17"),
        };
        var sql = "id = '0123abcd-0000-0000-0000-000000000017' AND day = 5 AND grade = 'a' AND due = '2030-01-02T03:04:05.0000000Z'"
            + " AND ratio = 0.30000000000000004 AND page = 'http://orders/17'";
        var rules = new[] { new Rule("object") { Sql = sql }, new Rule("dictionary") { Sql = "price = 12" } };
        var subscription = new Subscription("s") { Rules = { rules[0], rules[1] } };
        await With(new Topology { Topics = { new Topic("t") { Subscriptions = { subscription } } } }, async servicebus =>
        {
            var told = (await servicebus.ExplainAsync("t/Subscriptions/s", values))["object"];
            Assert.That(told.Matched, told.Expression);
            var prices = new Dictionary<string, int> { ["price"] = 12 };
            Assert.That((await servicebus.ExplainAsync("t/Subscriptions/s", prices))["dictionary"].Matched);
        });
    }

    [Test]
    public async Task OnlyPropertiesOfTheInstanceAreJson()
    {
        // Mono does not have these types.
        var day = Type.GetType("System.DateOnly")?.GetConstructor(new[] { typeof(int), typeof(int), typeof(int) });
        var time = Type.GetType("System.TimeOnly")?.GetConstructor(new[] { typeof(int), typeof(int) });
        var values = new Dictionary<string, object>
        {
            ["day"] = day?.Invoke(new object[] { 2030, 1, 2 }) ?? "2030-01-02",
            ["time"] = time?.Invoke(new object[] { 3, 4 }) ?? "03:04:00",
        };
        var rule = new Rule("r") { Sql = "day = '2030-01-02' AND time = '03:04:00'" };
        var topic = new Topic("t") { Subscriptions = { new Subscription("s") { Rules = { rule } } } };
        var topology = new Topology { Queues = { "a" }, Topics = { topic } };
        await With(topology, async servicebus =>
        {
            var told = (await servicebus.ExplainAsync("t/Subscriptions/s", values))["r"];
            Assert.That(told.Matched, told.Expression);
            var message = new ServiceBusMessage("{\"Amount\":9007199254740993}");
            await new ServiceBusClient(servicebus.ConnectionString).CreateSender("a").SendMessageAsync(message);
            await CompleteAsync(servicebus, "a");
            await servicebus.AssertCompletedAsync("a", new Expected { BodyJson = new Money { Amount = 9007199254740993 } });
            await servicebus.AssertNotCompletedAsync("a", new Expected { BodyJson = new Money { Amount = 9007199254740992 } });
            var error = await ErrorAsync(() => servicebus.AssertCompletedAsync("a", new Expected { BodyJson = new Cycle() }));
            Assert.That(error, Is.EqualTo(
                "the value has no JSON: it has more than 64 levels, here Namespaces+Cycle; does it contain itself?"));
        });
    }

    private sealed class Money
    {
        public static Money Zero => new Money();

        public BigInteger Amount { get; set; }

        public string this[int index] => throw new InvalidOperationException();
    }

    private sealed class Cycle
    {
        public Cycle Next => this;
    }
}
