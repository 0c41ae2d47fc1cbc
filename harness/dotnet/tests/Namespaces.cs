using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Azure.Messaging.ServiceBus;
using NUnit.Framework;
using ServiceBus.Testing;

/// <summary>The operations of a namespace, and errors for invalid input.</summary>
public partial class Namespaces
{
    [Test]
    public async Task NamespacesDoNotShareMessages()
    {
        await With(null, async servicebus =>
        {
            await SendAsync(servicebus, "queue.1");
            await CompleteAsync(servicebus, "queue.1");
            await servicebus.WaitIdleAsync();
            Assert.That(await servicebus.IsIdleAsync());
            var timeline = await servicebus.TimelineAsync("queue.1", "o-17");
            Assert.That(timeline.Kinds, Is.EqualTo(new[] { "sent", "delivered", "completed" }));
            Assert.That(timeline[0].ToString(), Is.StringMatching(@"^  \+\d+\.\d{3} s +sent +o-17, by .*, in queue\.1$"));
            await With(null, async another =>
            {
                Assert.That((await another.CountsAsync("queue.1")).Active, Is.EqualTo(0));
                Assert.That((await another.TimelineAsync()).ToString(), Is.EqualTo("  nothing happened"));
            });
        });
    }

    [Test]
    public void TheLibraryRefersToDotNetStandardAlone()
    {
        var references = typeof(ServiceBusEmulator).Assembly.GetReferencedAssemblies().Select(each => $"{each.Name} {each.Version}");
        Assert.That(references, Is.EqualTo(new[] { "netstandard 2.0.0.0" }));
    }

    [Test]
    public async Task TheClockAdvances()
    {
        await With(null, async servicebus =>
        {
            await servicebus.FreezeAsync();
            var began = await servicebus.NowAsync();
            await SendAsync(servicebus, "queue.1", TimeSpan.FromHours(1));
            Assert.That((await servicebus.CountsAsync("queue.1")).Active, Is.EqualTo(1));
            await servicebus.AdvanceAsync(TimeSpan.FromSeconds(3600.5));
            Assert.That(await servicebus.NowAsync() - began, Is.EqualTo(TimeSpan.FromSeconds(3600.5)));
            Assert.That((await servicebus.CountsAsync("queue.1")).Active, Is.EqualTo(0));
            await servicebus.ResumeAsync();
            await servicebus.StepByItselfAsync();
            await servicebus.HoldClockAsync(async () =>
                Assert.That((await servicebus.CountsAsync("queue.1")).Active, Is.EqualTo(0)));
        });
    }

    [Test]
    public async Task ATopologyDeclaresEntitiesAndSettings()
    {
        var high = new Subscription("high") { Rules = { new Rule("high") { Sql = "price > 10", Action = "SET tag = 'high'" } } };
        var red = new Subscription("red") { Rules = { new Rule("red") { Correlation = new { Label = "red" } } } };
        var topology = new Topology
        {
            Queues = { "plain", new Queue("strict") { MaxDeliveryCount = 1, LockDuration = TimeSpan.FromSeconds(5) } },
            Topics = { new Topic("prices") { RequiresDuplicateDetection = true, Subscriptions = { high, red, "all" } } },
            Settings = { ["Expiry"] = "on-receive" },
        };
        await With(topology, async servicebus =>
        {
            foreach (var entity in new[] { "plain", "strict/$DeadLetterQueue", "prices/Subscriptions/all" })
            {
                Assert.That((await servicebus.CountsAsync(entity)).Active, Is.EqualTo(0));
            }
            var rule = (await servicebus.ExplainAsync("prices/Subscriptions/high", new { price = 3 }))["high"];
            Assert.That(rule.Matched, Is.False);
            Assert.That(rule.Expression, Is.EqualTo("price > 10"));
            Assert.That((await servicebus.ExplainAsync("prices/Subscriptions/high", new { price = 12 }))["high"].Matched);
            Assert.That((await servicebus.ExplainAsync("prices/Subscriptions/red", null, new { Label = "red" }))["red"].Matched);
        });
    }

    [Test]
    public Task ATopologyWithSettingsOnlyHasOneQueue() =>
        With(new Topology { Settings = { ["Tier"] = "premium" } }, servicebus => servicebus.CountsAsync("queue.1"));

    [Test]
    public async Task AConfigurationIsAFileOrText()
    {
        var text = "{\"UserConfig\":{\"Namespaces\":[{\"Name\":\"n\",\"Queues\":[{\"Name\":\"declared\"}]}]}}";
        var file = Path.GetTempFileName();
        File.WriteAllText(file, text);
        await With(Topology.FromFile(file), servicebus => servicebus.CountsAsync("declared"));
        await With(Topology.FromJson(text), servicebus => servicebus.CountsAsync("declared"));
        File.Delete(file);
    }

    [Test]
    public async Task SessionsAreListed()
    {
        await With(new Topology { Queues = { new Queue("carts") { RequiresSession = true } } }, async servicebus =>
        {
            await new ServiceBusClient(servicebus.ConnectionString).CreateSender("carts")
                .SendMessageAsync(new ServiceBusMessage("add") { SessionId = "cart-7" });
            var cart = (await servicebus.SessionsAsync("carts")).Single();
            var values = new object[] { cart.Id, cart.Active, cart.Holder, cart.State };
            Assert.That(values, Is.EqualTo(new object[] { "cart-7", 1, null, null }));
            StringAssert.Contains("cart-7", await ErrorAsync(() => servicebus.LoseSessionLockAsync("carts", "cart-7")));
            await servicebus.ResetAsync();
            Assert.That(await servicebus.SessionsAsync("carts"), Is.Empty);
        });
    }

    [Test]
    public async Task ConnectionStringsNameTheListeners()
    {
        await With(null, servicebus =>
        {
            StringAssert.StartsWith("Endpoint=sb://127.0.0.1:", servicebus.AdministrationConnectionString);
            StringAssert.EndsWith("UseDevelopmentEmulator=true;", servicebus.ConnectionString);
            StringAssert.DoesNotContain("UseDevelopmentEmulator", servicebus.TlsConnectionString);
            var plain = servicebus.ConnectionString.Replace(";UseDevelopmentEmulator=true;", "");
            Assert.That(servicebus.TlsConnectionString, Is.Not.EqualTo(plain));
            Assert.That(File.Exists(servicebus.CaCertificate));
            return Task.FromResult(0);
        });
    }

    [Test]
    public async Task ATimeoutHasAReadableError()
    {
        await With(null, async servicebus =>
        {
            var within = TimeSpan.FromMilliseconds(20);
            var error = await ErrorAsync(() => servicebus.WaitForReceiverAsync("queue.1", within));
            Assert.That(error, Is.StringMatching("^queue.1: expected 1 receiver to be attached, found none within 0.02 s"));
            await SendAsync(servicebus, "queue.1");
            await new ServiceBusClient(servicebus.ConnectionString).CreateReceiver("queue.1").ReceiveMessageAsync();
            StringAssert.Contains("queue.1", await ErrorAsync(() => servicebus.WaitIdleAsync(within)));
        });
    }

    [Test]
    public async Task AFailedAssertionShowsTheTimeline()
    {
        await With(null, async servicebus =>
        {
            await SendAsync(servicebus, "queue.1");
            await CompleteAsync(servicebus, "queue.1");
            var one = new Expected { MessageId = "o-17", Body = TextMatch.Contains("1"), Count = 1 };
            await servicebus.AssertCompletedAsync("queue.1", one);
            await servicebus.AssertCompletedAsync("queue.1", new Expected { BodyJson = 12 });
            await servicebus.AssertEmptyAsync("queue.1");
            await servicebus.AssertMessageCountAsync("queue.1", new Expected { Active = 0 });
            await servicebus.AssertNotDeadLetteredAsync("queue.1");
            var wanted = new Expected { MessageId = "o-17", Within = TimeSpan.FromMilliseconds(50) };
            var error = await ErrorAsync(() => servicebus.AssertDeadLetteredAsync("queue.1", wanted));
            foreach (var kind in new[] { "sent", "delivered", "completed" })
            {
                StringAssert.Contains(kind, error);
            }
        });
    }

    [Test]
    public async Task BytesAreDecodedAsUtf8()
    {
        await With(null, async servicebus =>
        {
            await SendAsync(servicebus, "queue.1");
            await CompleteAsync(servicebus, "queue.1");
            var body = Encoding.UTF8.GetBytes("12");
            await servicebus.AssertCompletedAsync("queue.1", new Expected { Body = body });
            foreach (var expected in new[] { new Expected { Body = body }, new Expected { ["body"] = body } })
            {
                var error = await ErrorAsync(() => servicebus.AssertNotCompletedAsync("queue.1", expected));
                StringAssert.Contains("expected no message completed", error);
            }
            var noText = new Expected { Body = new byte[] { 255 } };
            var refused = await ErrorAsync(() => servicebus.AssertNotCompletedAsync("queue.1", noText));
            Assert.That(refused, Is.EqualTo("body is the bytes ff, which are not UTF-8; it takes a text"));
            var asJson = await ErrorAsync(() => servicebus.AssertNotCompletedAsync("queue.1", new Expected { BodyJson = body }));
            Assert.That(asJson, Is.EqualTo("body_json contains bytes, which JSON does not have; it takes JSON"));
        });
    }

    [Test]
    public async Task VariablesForAnotherEmulatorAreIgnored()
    {
        var settings = new Dictionary<string, string>
        {
            ["SERVICEBUS_EMULATOR_DATA"] = "/dev/null/data",
            ["SERVICEBUS_EMULATOR_CONFIG"] = "none.json",
            ["SERVICEBUS_EMULATOR_HTTPS_PORT"] = "1",
            ["SERVICEBUS_EMULATOR_CONTROL_TOKEN"] = "secret",
        };
        try
        {
            settings.ToList().ForEach(each => Environment.SetEnvironmentVariable(each.Key, each.Value));
            var emulator = await EmulatorProcess.StartAsync();
            await (await ServiceBusEmulator.StartAsync(null, emulator)).DisposeAsync();
            await emulator.StopAsync();
        }
        finally
        {
            settings.Keys.ToList().ForEach(each => Environment.SetEnvironmentVariable(each, null));
        }
    }

    [Test]
    public async Task EachAssertionExistsInTheEmulator()
    {
        var methods = typeof(ServiceBusEmulator).GetMethods()
            .Where(each => each.Name.StartsWith("Assert") && each.Name != "AssertAsync").ToArray();
        Assert.That(methods.Length, Is.EqualTo(24));
        await With(null, async servicebus =>
        {
            var required = new Dictionary<string, Expected>
            {
                ["AssertMessageCountAsync"] = new Expected { Active = 1 },
                ["AssertSessionOrderAsync"] = new Expected { Session = "cart-7", Bodies = new[] { "add", TextMatch.Contains("pay") } },
                ["AssertSessionStateAsync"] = new Expected { Session = "cart-7", StateBytes = new byte[] { 1 } },
                ["AssertScheduledAsync"] = new Expected { DueIn = TimeSpan.FromMinutes(1.5), Tolerance = TimeSpan.FromSeconds(1) },
                ["AssertNotScheduledAsync"] = new Expected { At = DateTimeOffset.Now },
                ["AssertForwardedAsync"] = new Expected { To = "inbox" },
            };
            foreach (var method in methods)
            {
                var expected = required.ContainsKey(method.Name) ? required[method.Name] : new Expected();
                expected.Within = TimeSpan.Zero;
                var asked = (Task)method.Invoke(servicebus, new object[] { "queue.1", expected });
                var failure = await FailureAsync(() => asked);
                Assert.That(failure == null || failure is ServiceBusAssertionException, $"{method.Name}: {failure}");
            }
        });
    }

    [Test]
    public async Task AnUnknownFieldOfAnAssertionHasAReadableError()
    {
        await With(null, async servicebus =>
        {
            var colour = await ErrorAsync(() => servicebus.AssertCompletedAsync("queue.1", new Expected { ["colour"] = "red" }));
            StringAssert.Contains("colour", colour);
            StringAssert.Contains("message_id", colour);
            var session = await ErrorAsync(() => servicebus.AssertCompletedAsync("queue.1", new Expected { Session = "a" }));
            StringAssert.Contains("session", session);
        });
    }

    [Test]
    public async Task AFaultFires()
    {
        await With(null, async servicebus =>
        {
            var refused = await servicebus.Faults.On("http", entity: "queue.1", name: "POST").AnswerAsync(503);
            await ErrorAsync(() => SendAsync(servicebus, "queue.1"));
            Assert.That(await refused.HitsAsync(), Is.EqualTo(1));
            await refused.RemoveAsync();
            await SendAsync(servicebus, "queue.1");
            await (await servicebus.Faults.On("complete").LoseReplyAsync()).RemoveAsync();
            await servicebus.Faults.ServiceUpdateAsync();
        });
    }

    [Test]
    public async Task AFaultThatNeverFiredFailsItsTest()
    {
        var error = await ErrorAsync(() => With(new Topology { Queues = { "a", "b" } }, async servicebus =>
        {
            await servicebus.Faults.On("complete", entity: "a").LoseLockAsync();
            await servicebus.Faults.On("http", entity: "a", nth: 2).AnswerAsync(503);
            await SendAsync(servicebus, "a");
            await SendAsync(servicebus, "b");
        }));
        var lines = error.Split('\n');
        Assert.That(lines[0], Is.StringMatching("^a fault never fired: .*\"effect\":\"lose-lock\",\"entity\":\"a\""));
        Assert.That(lines[1], Is.EqualTo("  no completion came"));
        Assert.That(lines[2], Is.StringMatching(@"^  scripted at .*Namespaces\.cs:\d+$"));
        Assert.That(lines[4], Is.EqualTo("  only 1 HTTP request came, and 1 in other entities"));
        Assert.That(lines[6], Is.EqualTo("hint: let the test perform the operation of the fault, or remove the fault"));
        Assert.That(lines[8], Is.StringMatching(@"^timeline of test-\d+$"));
        StringAssert.Contains(" sent ", lines[9]);
    }

    [Test]
    public async Task AFailedTestShowsTheTimeline()
    {
        var error = await ErrorAsync(() => ServiceBusEmulator.TestAsync(async servicebus =>
        {
            await servicebus.Faults.On("complete").LoseReplyAsync();
            await SendAsync(servicebus, "queue.1");
            throw new InvalidOperationException("another");
        }));
        Assert.That(error, Is.StringMatching(@"^another\ntimeline of test-\d+\n.* sent +o-17"));
        StringAssert.DoesNotContain("never fired", error);
        error = await ErrorAsync(() => ServiceBusEmulator.TestAsync(_ => throw new IgnoreException("not here")));
        Assert.That(error, Is.EqualTo("not here"));
        StringAssert.StartsWith("a fault never fired: ", await ErrorAsync(() => ServiceBusEmulator.TestAsync(
            servicebus => servicebus.Faults.On("complete").LoseReplyAsync())));
    }

    [Test]
    public async Task ATestThatDisposesOfItsNamespaceStillShowsTheTimeline()
    {
        var error = await ErrorAsync(() => ServiceBusEmulator.TestAsync(async servicebus =>
        {
            await SendAsync(servicebus, "queue.1");
            await servicebus.DisposeAsync();
            throw new InvalidOperationException("another");
        }));
        Assert.That(error, Is.StringMatching(@"^another\ntimeline of test-\d+\n.* sent +o-17"));
        await ServiceBusEmulator.TestAsync(servicebus => servicebus.DisposeAsync());
    }

    [Test]
    public async Task ACancelledTestIsCancelled()
    {
        using (var cancellation = new CancellationTokenSource())
        {
            var test = ServiceBusEmulator.TestAsync(null, servicebus =>
            {
                cancellation.Cancel();
                return servicebus.WaitIdleAsync();
            }, cancellation.Token);
            Assert.That(await FailureAsync(() => test), Is.InstanceOf<OperationCanceledException>());
        }
    }

    [Test]
    public async Task AnEntityThatIsNullIsNamed()
    {
        await With(null, async servicebus =>
        {
            var failure = await FailureAsync(() => servicebus.CountsAsync(null));
            Assert.That(((ArgumentNullException)failure).ParamName, Is.EqualTo("entity"));
        });
    }

    [Test]
    public async Task AnInvalidFaultHasAReadableError()
    {
        await With(null, async servicebus =>
        {
            StringAssert.Contains("complet", await ErrorAsync(() => servicebus.Faults.On("complet").LoseLockAsync()));
            StringAssert.Contains("lose-lok", await ErrorAsync(() => servicebus.Faults.On("send").ApplyAsync("lose-lok")));
            StringAssert.Contains("behin", await ErrorAsync(() => servicebus.Faults.On("send").ApplyAsync("hold-back", new { behin = 2 })));
        });
    }

    [Test]
    public async Task AnInvalidTopologyHasAReadableError()
    {
        var queues = new[] { new Queue("a") { ["MaxDeliveries"] = 3 }, new Queue("b") { LockDuration = TimeSpan.FromSeconds(1) } };
        var topology = new Topology { Queues = { queues[0], queues[1] } };
        var error = await ErrorAsync(() => ServiceBusEmulator.StartAsync(topology));
        StringAssert.StartsWith("the topology cannot be served: ", error);
        StringAssert.Contains("Queues[0].Properties.MaxDeliveries", error);
        StringAssert.Contains("did you mean \"MaxDeliveryCount\"?; ", error);
        StringAssert.EndsWith("Queues[1].Properties.LockDuration \"PT1S\": 5 s (PT5S) to 5 min (PT5M)", error);
        StringAssert.Contains("none.json", await ErrorAsync(() => ServiceBusEmulator.StartAsync(Topology.FromFile("none.json"))));
    }

    [Test]
    public async Task AProgramThatIsNotTheEmulatorIsAnError()
    {
        var before = Environment.GetEnvironmentVariable("SERVICEBUS_EMULATOR_BIN");
        var hint = "; check EmulatorProcess.Options and SERVICEBUS_EMULATOR_BIN";
        try
        {
            Environment.SetEnvironmentVariable("SERVICEBUS_EMULATOR_BIN", "/nowhere/emulator");
            var error = await ErrorAsync(() => EmulatorProcess.StartAsync());
            Assert.That(error, Is.EqualTo("SERVICEBUS_EMULATOR_BIN is /nowhere/emulator, which is not a file: correct the path, or unset it"));
            Environment.SetEnvironmentVariable("SERVICEBUS_EMULATOR_BIN", "/bin/true");
            error = await ErrorAsync(() => EmulatorProcess.StartAsync());
            Assert.That(error, Is.EqualTo($"the emulator did not start: /bin/true is not the emulator's program{hint}"));
            Environment.SetEnvironmentVariable("SERVICEBUS_EMULATOR_BIN", "/bin/cat");
            error = await ErrorAsync(() => EmulatorProcess.StartAsync());
            Assert.That(error, Is.StringMatching($"^the emulator did not start: .*cat: unrecognized option .*{hint}$"));
            Environment.SetEnvironmentVariable("SERVICEBUS_EMULATOR_BIN", "/etc/passwd");
            error = await ErrorAsync(() => EmulatorProcess.StartAsync());
            Assert.That(error, Is.StringMatching($"^the emulator did not start: /etc/passwd: .*{hint}$"));
        }
        finally
        {
            Environment.SetEnvironmentVariable("SERVICEBUS_EMULATOR_BIN", before);
        }
    }

    [Test]
    public async Task APortInUseAndAnUnknownOptionHaveReadableErrors()
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        var port = ((IPEndPoint)listener.LocalEndpoint).Port.ToString();
        var error = await ErrorAsync(() => EmulatorProcess.StartAsync("--amqp-port", port));
        StringAssert.StartsWith($"the emulator did not start: cannot listen on 127.0.0.1:{port}: Address already in use", error);
        listener.Stop();
        StringAssert.Contains("--amqp-prot", await ErrorAsync(() => EmulatorProcess.StartAsync("--amqp-prot", "1")));
        var tier = await ErrorAsync(() => EmulatorProcess.StartAsync("--tier", "gold"));
        StringAssert.Contains("'gold' for '--tier <TIER>' [possible values: basic, standard, premium]; check", tier);
    }

    [Test]
    public async Task OptionsReachTheEmulatorUnchanged()
    {
        foreach (var option in new[] { "--none a b", "--none\"", "--none\\", "--none\\\"", "--none a\\\\" })
        {
            StringAssert.Contains($"'{option}'", await ErrorAsync(() => EmulatorProcess.StartAsync(option)));
        }
    }

    [Test]
    public async Task AnEmulatorThatDiesHasAReadableError()
    {
        var emulator = await EmulatorProcess.StartAsync("--tier", "premium");
        var servicebus = await ServiceBusEmulator.StartAsync(null, emulator);
        Process.GetProcessById(emulator.Id).Kill();
        var message = @"^the emulator exited with code \d+ during the test run: start the run again ";
        Assert.That(await ErrorAsync(() => servicebus.CountsAsync("queue.1")), Is.StringMatching(message));
        Assert.That(await ErrorAsync(() => ServiceBusEmulator.StartAsync(null, emulator)), Is.StringMatching(message));
        Assert.That(await ErrorAsync(() => servicebus.DisposeAsync()), Is.StringMatching(message));
    }

    [Test]
    public async Task ASeparateEmulatorEnds()
    {
        var emulator = await EmulatorProcess.StartAsync();
        var process = Process.GetProcessById(emulator.Id);
        await (await ServiceBusEmulator.StartAsync(null, emulator)).DisposeAsync();
        await emulator.StopAsync();
        Assert.That(process.WaitForExit(0) || process.HasExited);
    }

    [Test]
    public async Task OptionsAreRefusedOnceTheEmulatorRuns()
    {
        await With(null, _ => Task.FromResult(0));
        var error = await ErrorAsync(() => Task.Run(() => EmulatorProcess.Options = new[] { "--tier", "premium" }));
        Assert.That(error, Is.StringMatching(@"^EmulatorProcess\.Options were set to \[--tier premium\], but .* before with \[\]"));
        Assert.That(EmulatorProcess.Options, Is.Empty);
    }

    [Test]
    public async Task ATokenCancelsWhatWaits()
    {
        using (var cancellation = new CancellationTokenSource())
        {
            var servicebus = await ServiceBusEmulator.StartAsync(null, null, cancellation.Token);
            var wait = servicebus.WaitForReceiverAsync("queue.1", TimeSpan.FromMinutes(5));
            cancellation.Cancel();
            Assert.That(await FailureAsync(() => wait), Is.InstanceOf<OperationCanceledException>());
            Assert.That(await FailureAsync(() => servicebus.ResetAsync()), Is.InstanceOf<OperationCanceledException>());
            await servicebus.DisposeAsync();
        }
    }

    [Test]
    public void XunitFindsTheInterfaceOfAssertions()
    {
        var names = typeof(ServiceBusAssertionException).GetInterfaces().Select(each => each.Name);
        Assert.That(names, Has.Member("IAssertionException"));
    }

    /// <summary>Does the same as `await using`.</summary>
    private static async Task With(Topology topology, Func<ServiceBusEmulator, Task> test)
    {
        var servicebus = await ServiceBusEmulator.StartAsync(topology);
        try
        {
            await test(servicebus);
        }
        finally
        {
            await servicebus.DisposeAsync();
        }
    }

    private static Task SendAsync(ServiceBusEmulator servicebus, string entity, TimeSpan? timeToLive = null)
    {
        var message = new ServiceBusMessage("12") { MessageId = "o-17", TimeToLive = timeToLive };
        return new ServiceBusClient(servicebus.ConnectionString).CreateSender(entity).SendMessageAsync(message);
    }

    private static async Task CompleteAsync(ServiceBusEmulator servicebus, string entity)
    {
        var receiver = new ServiceBusClient(servicebus.ConnectionString).CreateReceiver(entity);
        await receiver.CompleteMessageAsync(await receiver.ReceiveMessageAsync());
    }

    private static async Task<string> ErrorAsync(Func<Task> work)
    {
        return (await FailureAsync(work) ?? throw new AssertionException("no exception was thrown")).Message;
    }

    private static async Task<Exception> FailureAsync(Func<Task> work)
    {
        try
        {
            await work();
            return null;
        }
        catch (Exception error)
        {
            return error;
        }
    }
}
