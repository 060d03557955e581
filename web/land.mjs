// The land outline of Natural Earth as one string: rings of points in units of 0.05 degrees, as differences in zigzag varints.

const UNITS_PER_DEGREE = 20;

/** The rings of a TopoJSON land object as lists of [lon, lat] in units. */
function rings(topology) {
  const { scale, translate } = topology.transform;
  const arcs = topology.arcs.map((arc) => {
    let x = 0;
    let y = 0;
    return arc.map(([dx, dy]) => {
      x += dx;
      y += dy;
      return [x * scale[0] + translate[0], y * scale[1] + translate[1]].map((value) => Math.round(value * UNITS_PER_DEGREE));
    });
  });
  const found = [];
  for (const geometry of topology.objects.land.geometries) {
    for (const polygon of geometry.type === "Polygon" ? [geometry.arcs] : geometry.arcs) {
      for (const ring of polygon) {
        const points = [];
        for (const index of ring) {
          const arc = index < 0 ? arcs[~index].toReversed() : arcs[index];
          points.push(...arc.slice(points.length === 0 ? 0 : 1));
        }
        found.push(points.filter((point, i) => i === 0 || point[0] !== points[i - 1][0] || point[1] !== points[i - 1][1]));
      }
    }
  }
  return found;
}

/** Base64 of: number of rings; per ring the number of points, then differences of longitude and latitude. */
export function encodeLand(topology) {
  const bytes = [];
  const varint = (value) => {
    while (value > 127) {
      bytes.push((value & 127) | 128);
      value >>>= 7;
    }
    bytes.push(value);
  };
  const signed = (value) => varint(value < 0 ? -2 * value - 1 : 2 * value);
  const all = rings(topology);
  varint(all.length);
  for (const points of all) {
    varint(points.length);
    let [x, y] = [0, 0];
    for (const [px, py] of points) {
      signed(px - x);
      signed(py - y);
      [x, y] = [px, py];
    }
  }
  return Buffer.from(bytes).toString("base64");
}
