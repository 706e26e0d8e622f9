'use strict';
// Replaces tera-data-parser/types.
const { Vec3, SkillID } = require('../types');
module.exports = { Vec3, SkillID };
