using NUnit.Framework.Constraints;

/// <summary>A constraint that NUnit 3 has under another name than NUnit 2.</summary>
internal abstract class Is : NUnit.Framework.Is
{
    internal static RegexConstraint StringMatching(string pattern) => new RegexConstraint(pattern);
}
