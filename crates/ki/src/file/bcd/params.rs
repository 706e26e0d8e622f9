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

/// The size of a shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Params {
    /// The size of a box.
    Box(BoxParams),
    /// The parameters of a ray.
    Ray(RayParams),
    /// The size of a sphere.
    Sphere(SphereParams),
    /// The size of a cylinder.
    Cylinder(CylinderParams),
    /// The size of a tube.
    Tube(CylinderParams),
    /// The parameters of a plane.
    Plane(PlaneParams),
    /// A mesh has no parameters.
    Mesh,
}

impl Params {
    /// The type they belong to.
    #[must_use]
    pub fn kind(&self) -> CollisionType {
        match self {
            Self::Box(_) => CollisionType::Box,
            Self::Ray(_) => CollisionType::Ray,
            Self::Sphere(_) => CollisionType::Sphere,
            Self::Cylinder(_) => CollisionType::Cylinder,
            Self::Tube(_) => CollisionType::Tube,
            Self::Plane(_) => CollisionType::Plane,
            Self::Mesh => CollisionType::Mesh,
        }
    }

    pub(super) fn read<'n, T: Trace<'n>>(
        reader: &mut Reader<'_, T>,
        kind: CollisionType,
    ) -> Result<Self> {
        const NAME: &str = "params";
        match kind {
            CollisionType::Box => BoxParams::decode(reader, NAME).map(Self::Box),
            CollisionType::Ray => RayParams::decode(reader, NAME).map(Self::Ray),
            CollisionType::Sphere => SphereParams::decode(reader, NAME).map(Self::Sphere),
            CollisionType::Cylinder => CylinderParams::decode(reader, NAME).map(Self::Cylinder),
            CollisionType::Tube => CylinderParams::decode(reader, NAME).map(Self::Tube),
            CollisionType::Plane => PlaneParams::decode(reader, NAME).map(Self::Plane),
            _ => Ok(Self::Mesh),
        }
    }

    pub(super) fn encode(&self, writer: &mut Writer) -> Result<()> {
        match self {
            Self::Box(params) => params.encode_fields(writer),
            Self::Ray(params) => params.encode_fields(writer),
            Self::Sphere(params) => params.encode_fields(writer),
            Self::Cylinder(params) | Self::Tube(params) => params.encode_fields(writer),
            Self::Plane(params) => params.encode_fields(writer),
            Self::Mesh => Ok(()),
        }
    }

    pub(super) fn from_json(kind: CollisionType, json: Given<'_>) -> Result<Self> {
        match kind {
            CollisionType::Box => BoxParams::from_json(json).map(Self::Box),
            CollisionType::Ray => RayParams::from_json(json).map(Self::Ray),
            CollisionType::Sphere => SphereParams::from_json(json).map(Self::Sphere),
            CollisionType::Cylinder => CylinderParams::from_json(json).map(Self::Cylinder),
            CollisionType::Tube => CylinderParams::from_json(json).map(Self::Tube),
            CollisionType::Plane => PlaneParams::from_json(json).map(Self::Plane),
            CollisionType::Mesh => FieldsOf::new(json)?.end().map(|()| Self::Mesh),
            other => Err(Error::value("a type from 0 to 6", other.to_string())),
        }
    }

    pub(super) fn sample(sampler: &mut Sampler) -> Self {
        match sampler.below(7) {
            0 => Self::Box(BoxParams::sample(sampler)),
            1 => Self::Ray(RayParams::sample(sampler)),
            2 => Self::Sphere(SphereParams::sample(sampler)),
            3 => Self::Cylinder(CylinderParams::sample(sampler)),
            4 => Self::Tube(CylinderParams::sample(sampler)),
            5 => Self::Plane(PlaneParams::sample(sampler)),
            _ => Self::Mesh,
        }
    }
}
