//! The size of a shape, which is the last part of a collision.

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Error, Field, Float, Reader, Record, Result, Sampler, Trace, Writer, record};

use super::super::primitive::Vector3;
use super::CollisionType;

record! {
    /// The sides of a box along the local x, y and z axes. Its centre is the location.
    pub struct BoxParams {
        length "length": Float,
        width "width": Float,
        depth "depth": Float,
    }
}

record! {
    /// A ray. Position and direction are a single number each.
    pub struct RayParams {
        position "position": Float,
        direction "direction": Float,
        length "length": Float,
    }
}

record! {
    /// A sphere around the location.
    pub struct SphereParams {
        radius "radius": Float,
    }
}

record! {
    /// A cylinder or a tube. Its centre is the location.
    pub struct CylinderParams {
        radius "radius": Float,
        length "length": Float,
    }
}

record! {
    /// A plane: all points whose dot product with the normal is the distance.
    pub struct PlaneParams {
        normal "normal": Vector3,
        distance "distance": Float,
    }
}

macro_rules! params {
    ($($(#[$doc:meta])* $kind:ident($params:ty);)*) => {
        /// The size of a shape.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Params {
            $($(#[$doc])* $kind($params),)*
            /// A mesh has no parameters.
            Mesh,
        }

        impl Params {
            /// The type of shape that these parameters belong to.
            #[must_use]
            pub fn kind(&self) -> CollisionType {
                match self {
                    $(Self::$kind(_) => CollisionType::$kind,)*
                    Self::Mesh => CollisionType::Mesh,
                }
            }

            pub(super) fn read<'n, T: Trace<'n>>(
                reader: &mut Reader<'_, T>,
                kind: CollisionType,
            ) -> Result<Self> {
                match kind {
                    $(CollisionType::$kind => {
                        <$params>::decode(reader, "params").map(Self::$kind)
                    })*
                    _ => Ok(Self::Mesh),
                }
            }

            pub(super) fn encode(&self, writer: &mut Writer) -> Result<()> {
                match self {
                    $(Self::$kind(params) => params.encode_fields(writer),)*
                    Self::Mesh => Ok(()),
                }
            }

            pub(super) fn from_json(kind: CollisionType, json: Given<'_>) -> Result<Self> {
                match kind {
                    $(CollisionType::$kind => <$params>::from_json(json).map(Self::$kind),)*
                    CollisionType::Mesh => FieldsOf::new(json)?.end().map(|()| Self::Mesh),
                    other => Err(Error::value("a type from 0 to 6", other.to_string())),
                }
            }

            pub(super) fn sample(sampler: &mut Sampler) -> Self {
                let makers = [$(|sampler: &mut Sampler| Self::$kind(Field::sample(sampler)),)*];
                let index = usize::try_from(sampler.below(makers.len() as u64 + 1)).unwrap_or(0);
                makers.get(index).map_or(Self::Mesh, |make| make(sampler))
            }
        }
    };
}

params! {
    /// The size of a box.
    Box(BoxParams);
    /// The parameters of a ray.
    Ray(RayParams);
    /// The size of a sphere.
    Sphere(SphereParams);
    /// The size of a cylinder.
    Cylinder(CylinderParams);
    /// The size of a tube.
    Tube(CylinderParams);
    /// The parameters of a plane.
    Plane(PlaneParams);
}
