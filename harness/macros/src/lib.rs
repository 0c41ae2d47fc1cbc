//! The attribute `#[servicebus_harness::test]`: turns a function with a namespace argument into a test that starts the
//! namespace. The harness re-exports and documents it with its feature `macros`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{Block, Error, Expr, Ident, ItemFn, ReturnType, Token, Type, parse2};

/// Turns an `async fn` with a namespace argument into a test; see `servicebus_harness::test`.
#[proc_macro_attribute]
pub fn test(
    arguments: proc_macro::TokenStream,
    function: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let expanded = expand(arguments.into(), function.into());
    expanded.unwrap_or_else(Error::into_compile_error).into()
}

fn expand(arguments: TokenStream, function: TokenStream) -> Result<TokenStream, Error> {
    let builder = builder(arguments)?;
    let test: ItemFn = parse2(function)?;
    let signature = &test.sig;
    if signature.asyncness.is_none() || signature.inputs.len() != 1 {
        return Err(Error::new_spanned(
            signature,
            "a test of `servicebus_harness::test` is an `async fn` with one argument: `servicebus: ServiceBus`",
        ));
    }
    let (attributes, name, output) = (&test.attrs, &signature.ident, &signature.output);
    let block = body(output, &test.block);
    Ok(quote! {
        #(#attributes)*
        #[::core::prelude::v1::test]
        fn #name() #output {
            #signature #block
            ::servicebus_harness::run_test(#builder, #name)
        }
    })
}

/// Returns the body of the test. A returned error is recorded before the namespace ends, because checks at that end may fail
/// too.
fn body(output: &ReturnType, block: &Block) -> TokenStream {
    match output {
        ReturnType::Type(_, returned) if is_result(returned) => quote!({
            let returned: #returned = async #block.await;
            ::servicebus_harness::returned(returned)
        }),
        ReturnType::Type(..) | ReturnType::Default => quote!(#block),
    }
}

fn is_result(returned: &Type) -> bool {
    let Type::Path(path) = returned else {
        return false;
    };
    path.path
        .segments
        .last()
        .is_some_and(|last| last.ident == "Result")
}

/// Returns the builder of the namespace that the arguments describe.
fn builder(arguments: TokenStream) -> Result<TokenStream, Error> {
    let arguments = Punctuated::<Argument, Token![,]>::parse_terminated.parse2(arguments)?;
    for Argument { name, .. } in &arguments {
        if !ARGUMENTS.iter().any(|known| name == known) {
            return Err(unknown_argument(name));
        }
    }
    let mut arguments = arguments.into_iter();
    let Some(Argument { name, value }) = arguments.next() else {
        return Ok(quote!(::servicebus_harness::ServiceBus::builder()));
    };
    if let Some(second) = arguments.next() {
        let text = "a test takes `topology` or `builder`, once: a builder has its own topology";
        return Err(Error::new(second.name.span(), text));
    }
    Ok(match name == TOPOLOGY {
        true => quote!(::servicebus_harness::ServiceBus::builder().topology(#value)),
        false => quote!(#value),
    })
}

const TOPOLOGY: &str = "topology";
const ARGUMENTS: [&str; 2] = [TOPOLOGY, "builder"];
/// What the arguments look like.
const ALLOWED: &str = "allowed are `topology = Topology::…` and `builder = ServiceBus::builder()…`";

fn unknown_argument(name: &Ident) -> Error {
    let runtime = match name == "flavor" || name == "worker_threads" || name == "start_paused" {
        true => {
            ", which is of `#[tokio::test]`; with `#[rstest]` and that, take the fixture `servicebus`"
        }
        false => "",
    };
    let text = format!("there is no argument `{name}`{runtime}; {ALLOWED}");
    Error::new(name.span(), text)
}

/// `name = value`.
struct Argument {
    name: Ident,
    value: Expr,
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> Result<Self, Error> {
        // A value without its name, such as `Topology::new()`, begins as a name does.
        if !(input.peek(Ident) && input.peek2(Token![=])) {
            return Err(input.error(format!("an argument has a name; {ALLOWED}")));
        }
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        let value = input.parse()?;
        Ok(Self { name, value })
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::{TokenStream, expand};

    fn refused(arguments: TokenStream, function: TokenStream) -> String {
        let expanded = expand(arguments, function);
        expanded.expect_err("it is refused").to_string()
    }

    #[test]
    fn the_function_is_unchanged_within_its_test() {
        let function = quote!(
            #[ignore]
            async fn orders(servicebus: ServiceBus) -> Result<(), E> {
                Ok(())
            }
        );
        let name = quote!(orders);
        let expected = quote!(
            #[ignore]
            #[::core::prelude::v1::test]
            fn orders() -> Result<(), E> {
                async fn orders(servicebus: ServiceBus) -> Result<(), E> {
                    let returned: Result<(), E> = async { Ok(()) }.await;
                    ::servicebus_harness::returned(returned)
                }
                ::servicebus_harness::run_test(
                    ::servicebus_harness::ServiceBus::builder().topology(shop()),
                    #name
                )
            }
        );
        let expanded = expand(quote!(topology = shop(),), function).expect("it is a test");
        assert_eq!(expanded.to_string(), expected.to_string());
    }

    #[test]
    fn errors_name_the_mistake() {
        let good = quote!(
            async fn orders(servicebus: ServiceBus) {}
        );
        for bad in [
            quote!(
                fn orders(servicebus: ServiceBus) {}
            ),
            quote!(
                async fn orders() {}
            ),
        ] {
            let text = refused(quote!(), bad);
            assert!(text.contains("an `async fn` with one argument"), "{text}");
        }
        let text = refused(quote!(topologie = shop()), good.clone());
        assert!(
            text.starts_with("there is no argument `topologie`"),
            "{text}"
        );
        let text = refused(quote!(topology = shop(), flavor = "x"), good.clone());
        let begins = "there is no argument `flavor`, which is of `#[tokio::test]`; ";
        assert!(text.starts_with(begins), "{text}");
        let text = refused(quote!(Topology::new()), good.clone());
        let begins = "an argument has a name; allowed are `topology = Topology::…`";
        assert!(text.starts_with(begins), "{text}");
        let text = refused(quote!(topology = shop(), builder = other()), good);
        assert!(text.contains("`topology` or `builder`"), "{text}");
    }
}
