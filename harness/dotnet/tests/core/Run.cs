using System;
using System.Collections.Generic;
using System.Linq;
using System.Reflection;
using NUnit.Framework.Api;
using NUnit.Framework.Interfaces;
using NUnit.Framework.Internal;

/// <summary>Runs the tests of an assembly with NUnit's framework, and prints what NUnit 2's console does.</summary>
internal static class Run
{
    private static void Main(string[] arguments)
    {
        var runner = new NUnitTestAssemblyRunner(new DefaultTestAssemblyBuilder());
        runner.Load(Assembly.LoadFrom(arguments[0]), new Dictionary<string, object>());
        var tests = Leaves(runner.Run(TestListener.NULL, TestFilter.Empty)).ToArray();
        var failed = tests.Where(each => each.ResultState.Status == TestStatus.Failed).ToArray();
        var errors = failed.Count(each => each.ResultState.Label == ResultState.Error.Label);
        Console.WriteLine($"Tests run: {tests.Length}, Errors: {errors}, Failures: {failed.Length - errors}");
        Console.Write(string.Join("", failed.Select(each => $"{each.FullName}: {each.Message}\n{each.StackTrace}\n")));
    }

    private static IEnumerable<ITestResult> Leaves(ITestResult result) =>
        result.HasChildren ? result.Children.SelectMany(Leaves) : new[] { result }.Where(each => !each.Test.IsSuite);
}
