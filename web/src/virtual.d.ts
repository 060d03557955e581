declare module "virtual:land" {
  const land: string;
  export default land;
}
declare module "*.css";
