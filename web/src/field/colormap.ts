// Colour maps as colours at equal distances, between which colours are interpolated. Names and colours are those of `tet plot`.

const COLORS: Record<string, string> = {
  viridis:
    "44015446085c471063481769481d6f482475472a7a46307e453781433d844142873f48893d4e8a3a538b38598c355e8d33638d31688e2e6d8e2c718e2a768e297b8e27808e25848e23898e218e8d20928c1f978b1e9c891fa18821a58524aa8328ae802eb37c35b7793dbc7446c06f50c46a5ac86465cb5e70cf577cd25089d54895d840a2da37b0dd2fbddf26cae11fd8e219e5e419f1e51dfde725",
  plasma:
    "0d08871b068d2605912f059638049a41049d4903a05102a35901a56100a76900a87100a87801a88004a88707a68e0ca49511a19c179ea21d9aa82296ae2892b42e8dba3388bf3984c43e7fc9447acd4a76d24f71d6556dda5b69de6164e26660e66c5ce97257ed7953f07f4ff3854bf58c46f79342f99a3efba139fca835fdaf31feb72dfebe2afdc627fcce25fbd724f8df25f6e826f3f027f0f921",
  inferno:
    "00000402020c0504170a072210092d160b391e0c45260c512f0a5b380962400a67490b6a510e6c59106e61136e69166e71196e781c6d801f6c88226a902568982766a02a63a82e5fb0315bb73557bf3952c63d4dcc4248d34743d94d3ddf5337e45a31e9612bed6925f1711ff47918f78212f98b0bfa9407fb9d07fca60cfcb014fbba1ffac42af8cd37f6d746f4e156f2ea69f2f27df5f992fcffa4",
  magma:
    "00000402020b0504160907200e0b2b140e361a104221114e29115a311165390f6e420f754a107952137c5a167e6219806a1c81721f81792282812581892881912b81992d80a1307eaa337db2357bba3878c23b75ca3e72d2426fd9466be04c67e75263ec5860f1605df4695cf7725cf97b5dfb8560fc8e64fd9869fea16efeaa74feb47bfebd82fec68afecf92fed89afde2a3fdebacfcf4b6fcfdbf",
  cividis:
    "00205100245900275f002b64052e6709326a0f356c15396d1c3c6e23406e29436e30476e374a6e3e4e6e44526d4b556d51596e575c6e5c606e62646f67676f6c6b70706f717572727976737d7a74817d758581768985778e8978928d789691789b95789f9978a49d78a9a177aea575b4a974baae72bfb26fc5b66cccbb69d2bf66d8c462dec85ee4cd5aead256f0d652f4db4ef8e04bfbe548fdea45",
  turbo:
    "23171b362354422f83493ca84b49c54a56db4664ea4172f33c80f8368df9309bf62ba7f028b4e826bfdf25cad326d4c829ddbb2ee5ae35eca13ef29548f78854fa7d61fd716ffe677efd5d8dfc559cf94dacf546bbf03fc9e93ad7e235e3d931eed02df7c52afeb927ffad25ffa022ff9320ff851eff781cfc6a19f45c17ea4f14df4212d3360fc62a0bb92108ac1805a11202980e00920c00900c00",
  coolwarm:
    "0530610a3b7010457e164f8b1b5a982164a2286dab2e76b23680b93e89be4892c3549bc861a5cd6faed27db7d78bc0db99c7e0a6cfe3b2d5e7bedbeac9e1edd3e6f0dbeaf1e3edf2eaeff2eff0f0f4efecf7ece6f9e8defae2d5fbdbcafad3bffacab3f8c1a6f6b69af3ab8def9f81eb9276e6856be07861da6b57d45d4ecd4f46c6413fbe3539b52933aa1f2e9f172a921027840a2476052167001f",
  greys: "fffffff0f0f0d9d9d9bdbdbd969696737373525252252525000000",
};

export const COLORMAPS = ["viridis", "magma", "plasma", "inferno", "cividis", "turbo", "greys", "coolwarm"];

/** 256 colours of a map, as the bytes of RGBA. An unknown name is viridis. */
export function lookup(name: string): Uint8ClampedArray {
  const hex = COLORS[name] ?? COLORS.viridis ?? "";
  const stops = hex.length / 6;
  const table = new Uint8ClampedArray(4 * 256);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (stops - 1);
    const left = Math.min(Math.floor(at), stops - 2);
    for (let c = 0; c < 3; c++) {
      const part = (stop: number) => Number.parseInt(hex.slice(6 * stop + 2 * c, 6 * stop + 2 * c + 2), 16);
      table[4 * i + c] = part(left) + (part(left + 1) - part(left)) * (at - left);
    }
    table[4 * i + 3] = 255;
  }
  return table;
}

/** Whether values between the two ends are best shown around zero. */
export function isSigned(low: number, high: number): boolean {
  return low < 0 && high > 0 && Math.min(-low, high) > 0.1 * Math.max(-low, high);
}
