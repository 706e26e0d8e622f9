'use strict';
// In place of tera-data-parser/types.
const { Vec3, SkillID } = require('../types');
module.exports = { Vec3, SkillID };
