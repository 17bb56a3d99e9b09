//! Explains.
use super::ApiRefusal;
use crate::request::Request;
pub(crate) async fn answer(_request: &Request) -> Result<Vec<u8>, ApiRefusal> {
    Ok(Vec::new())
}
