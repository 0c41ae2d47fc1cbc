//! Request bodies that are JSON objects.
//!
//! A derived `Deserialize` takes an array for a struct as well, its elements in the order of the fields: nobody
//! means that, so that it is refused here.

use std::fmt;
use std::marker::PhantomData;

use axum::Json;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess};

use super::error::ApiError;

/// A body that is an object with the fields of `T`.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        match Json::from_request(request, state).await? {
            Json(Shape::Object(fields)) => Ok(Self(fields)),
            Json(Shape::Other(found)) => {
                let message = format!("the body must be a JSON object; it is {found}");
                Err(ApiError::new(
                    StatusCode::BAD_REQUEST,
                    "invalid-body",
                    message,
                ))
            }
        }
    }
}

/// What a body turns out to be.
enum Shape<T> {
    Object(T),
    Other(&'static str),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shape<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor(PhantomData))
    }
}

struct Visitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
    type Value = Shape<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Shape<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Shape::Object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Shape<T>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Shape::Other("an array"))
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape<T>, E> {
        Ok(Shape::Other("a string"))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape<T>, E> {
        Ok(Shape::Other("a number"))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape<T>, E> {
        Ok(Shape::Other("a number"))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape<T>, E> {
        Ok(Shape::Other("a number"))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape<T>, E> {
        Ok(Shape::Other("a boolean"))
    }

    fn visit_unit<E>(self) -> Result<Shape<T>, E> {
        Ok(Shape::Other("null"))
    }
}
