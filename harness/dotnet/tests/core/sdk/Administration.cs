using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;
using Azure.Messaging.ServiceBus;
using Azure.Messaging.ServiceBus.Administration;
using NUnit.Framework;
using ServiceBus.Testing;

/// <summary>Entities and rules that the SDK's clients create.</summary>
public class Administration
{
    private const ServiceBusFailureReason NotFound = ServiceBusFailureReason.MessagingEntityNotFound;
    private const ServiceBusFailureReason AlreadyExists = ServiceBusFailureReason.MessagingEntityAlreadyExists;

    [Test]
    public async Task QueuesAreCreatedUpdatedAndDeleted()
    {
        await using var bus = await ServiceBusEmulator.StartAsync();
        var administration = new ServiceBusAdministrationClient(bus.AdministrationConnectionString);
        Assert.That((await administration.GetNamespacePropertiesAsync()).Value.Name, Is.EqualTo(bus.Name));
        var options = new CreateQueueOptions("orders")
        {
            LockDuration = TimeSpan.FromSeconds(45), MaxDeliveryCount = 3, RequiresDuplicateDetection = true, UserMetadata = "text",
            DefaultMessageTimeToLive = TimeSpan.FromDays(1), AutoDeleteOnIdle = TimeSpan.FromHours(1), MaxSizeInMegabytes = 2048,
            AuthorizationRules = { new SharedAccessAuthorizationRule("key", new[] { AccessRights.Send, AccessRights.Listen }) },
        };
        var queue = (await administration.CreateQueueAsync(options)).Value;
        Assert.That(queue.MaxMessageSizeInKilobytes, Is.EqualTo(256));
        options.MaxMessageSizeInKilobytes = queue.MaxMessageSizeInKilobytes;
        Assert.That(new CreateQueueOptions(queue), Is.EqualTo(options));
        queue.MaxDeliveryCount = 5;
        queue.Status = EntityStatus.ReceiveDisabled;
        queue = (await administration.UpdateQueueAsync(queue)).Value;
        Assert.That((queue.MaxDeliveryCount, queue.Status), Is.EqualTo((5, EntityStatus.ReceiveDisabled)));
        await using var client = Sdk.Client(bus);
        await client.CreateSender("orders").SendMessageAsync(new ServiceBusMessage());
        var counts = (await administration.GetQueueRuntimePropertiesAsync("orders")).Value;
        Assert.That((counts.ActiveMessageCount, counts.TotalMessageCount), Is.EqualTo((1, 1)));
        Assert.That(await Sdk.ReasonAsync(() => administration.CreateQueueAsync("orders")), Is.EqualTo(AlreadyExists));
        Assert.That(await NamesAsync(administration.GetQueuesAsync(), each => each.Name), Is.EqualTo(new[] { "orders", "queue.1" }));
        await administration.DeleteQueueAsync("orders");
        Assert.That((await administration.QueueExistsAsync("orders")).Value, Is.False);
        Assert.That(await Sdk.ReasonAsync(() => administration.GetQueueAsync("orders")), Is.EqualTo(NotFound));
        var invalid = new CreateQueueOptions("orders") { MaxSizeInMegabytes = 7 };
        Assert.That(await Sdk.ErrorAsync(() => administration.CreateQueueAsync(invalid)), Is.InstanceOf<ArgumentException>());
    }

    [Test]
    public async Task TopicsSubscriptionsAndRulesAreAdministered()
    {
        await using var bus = await ServiceBusEmulator.StartAsync();
        var administration = new ServiceBusAdministrationClient(bus.AdministrationConnectionString);
        var topic = (await administration.CreateTopicAsync("prices")).Value;
        topic.UserMetadata = "text";
        Assert.That((await administration.UpdateTopicAsync(topic)).Value.UserMetadata, Is.EqualTo("text"));
        var filter = new SqlRuleFilter("price > @limit") { Parameters = { ["@limit"] = 10 } };
        var high = new CreateRuleOptions("high", filter) { Action = new SqlRuleAction("SET tag = 'high'") };
        var options = new CreateSubscriptionOptions("prices", "all") { RequiresSession = true };
        var subscription = (await administration.CreateSubscriptionAsync(options, high)).Value;
        Assert.That(new CreateSubscriptionOptions(subscription), Is.EqualTo(options));
        var rule = (await administration.GetRuleAsync("prices", "all", "high")).Value;
        Assert.That((rule.Filter, rule.Action), Is.EqualTo((high.Filter, high.Action)));
        var properties = new Dictionary<string, object>
        {
            ["int"] = 3, ["time"] = new DateTime(2020, 1, 2, 0, 0, 0, DateTimeKind.Utc), ["span"] = TimeSpan.FromSeconds(3),
        };
        var correlation = new CorrelationRuleFilter { CorrelationId = "c" };
        properties.ToList().ForEach(each => correlation.ApplicationProperties.Add(each));
        rule.Filter = correlation;
        Assert.That((await administration.UpdateRuleAsync("prices", "all", rule)).Value.Filter, Is.EqualTo(correlation));
        await administration.CreateRuleAsync("prices", "all", new CreateRuleOptions("true", new TrueRuleFilter()));
        var names = await NamesAsync(administration.GetRulesAsync("prices", "all"), each => each.Name);
        Assert.That(names, Is.EqualTo(new[] { "high", "true" }));
        Assert.That(await Sdk.ReasonAsync(() => administration.GetRuleAsync("prices", "all", "none")), Is.EqualTo(NotFound));
        Assert.That(await Sdk.ReasonAsync(() => administration.GetSubscriptionAsync("prices", "none")), Is.EqualTo(NotFound));
        Assert.That((await administration.GetTopicRuntimePropertiesAsync("prices")).Value.SubscriptionCount, Is.EqualTo(1));
        await administration.DeleteSubscriptionAsync("prices", "all");
        await administration.DeleteTopicAsync("prices");
    }

    [Test]
    public async Task ARuleManagerChangesRules()
    {
        var topology = new Topology { Topics = { new Topic("prices") { Subscriptions = { "some" } } } };
        await using var bus = await ServiceBusEmulator.StartAsync(topology);
        await using var client = Sdk.Client(bus);
        var rules = client.CreateRuleManager("prices", "some");
        await rules.DeleteRuleAsync(RuleProperties.DefaultRuleName);
        var filter = new CorrelationRuleFilter { Subject = "red", ApplicationProperties = { ["size"] = 3 } };
        await rules.CreateRuleAsync(new CreateRuleOptions("red", filter) { Action = new SqlRuleAction("SET tag = 'red'") });
        await rules.CreateRuleAsync("high", new SqlRuleFilter("price > 10"));
        Assert.That(await Sdk.ReasonAsync(() => rules.CreateRuleAsync("high", new TrueRuleFilter())), Is.EqualTo(AlreadyExists));
        Assert.That(await Sdk.ReasonAsync(() => rules.DeleteRuleAsync("none")), Is.EqualTo(NotFound));
        var filters = await NamesAsync(rules.GetRulesAsync(), each => each.Filter);
        Assert.That(filters, Is.EquivalentTo(new RuleFilter[] { filter, new SqlRuleFilter("price > 10") }));
        await client.CreateSender("prices").SendMessagesAsync(new[]
        {
            new ServiceBusMessage("1") { ApplicationProperties = { ["price"] = 12 } },
            new ServiceBusMessage("2") { ApplicationProperties = { ["price"] = 1 } },
            new ServiceBusMessage("3") { Subject = "red", ApplicationProperties = { ["size"] = 3 } },
        });
        var got = await client.CreateReceiver("prices", "some").ReceiveMessagesAsync(3);
        Assert.That(got.Select(each => $"{each.Body}"), Is.EqualTo(new[] { "1", "3" }));
        Assert.That(got[1].ApplicationProperties["tag"], Is.EqualTo("red"));
    }

    private static async Task<List<TResult>> NamesAsync<T, TResult>(IAsyncEnumerable<T> items, Func<T, TResult> property)
    {
        var found = new List<TResult>();
        await foreach (var item in items)
        {
            found.Add(property(item));
        }
        return found;
    }
}
