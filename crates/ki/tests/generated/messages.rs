// Made by worldwire from message definitions. Changes are lost when it is made again.

/// SYSTEM (1).
pub mod system {
    use worldwire_core::{Error, Reader, Record, Result, Trace, Writer, record};

    record! {
        /// MSG_PING (1/1).
        pub struct MsgPing {
        }
    }

    impl MsgPing {
        /// The protocol.
        pub const SERVICE: u8 = 1;
        /// The message in it.
        pub const ORDER: u8 = 1;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_PING_RSP (1/2).
        pub struct MsgPingRsp {
        }
    }

    impl MsgPingRsp {
        /// The protocol.
        pub const SERVICE: u8 = 1;
        /// The message in it.
        pub const ORDER: u8 = 2;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    /// Any message of the service.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message {
        /// MSG_PING.
        MsgPing(MsgPing),
        /// MSG_PING_RSP.
        MsgPingRsp(MsgPingRsp),
    }

    impl Message {
        /// Reads the payload of the message with this number.
        ///
        /// # Errors
        /// Malformed, for another number; else those of the fields.
        pub fn decode<'n, T: Trace<'n>>(order: u8, reader: &mut Reader<'_, T>) -> Result<Self> {
            match order {
                1 => MsgPing::decode_fields(reader).map(Self::MsgPing),
                2 => MsgPingRsp::decode_fields(reader).map(Self::MsgPingRsp),
                other => Err(Error::malformed("a message of this service", other.to_string())),
            }
        }
    }

    impl Message {
        /// The number in the service.
        #[must_use]
        pub fn order(&self) -> u8 {
            match self {
                Self::MsgPing(_) => 1,
                Self::MsgPingRsp(_) => 2,
            }
        }

        /// Writes the payload.
        ///
        /// # Errors
        /// Value, for a string that is too long.
        pub fn encode(&self, writer: &mut Writer) -> Result<()> {
            match self {
                Self::MsgPing(message) => message.encode_fields(writer),
                Self::MsgPingRsp(message) => message.encode_fields(writer),
            }
        }
    }
}

/// GAME (5).
pub mod game {
    use worldwire_core::{Error, Reader, Record, Result, Trace, Writer, record};

    record! {
        /// MSG_CLIENTMOVE (5/36).
        pub struct MsgClientmove {
            /// USHRT.
            location_x "LocationX": u16,
            /// USHRT.
            location_y "LocationY": u16,
            /// USHRT.
            location_z "LocationZ": u16,
            /// UBYT.
            direction "Direction": u8,
            /// UBYT.
            zone_counter "ZoneCounter": u8,
        }
    }

    impl MsgClientmove {
        /// The protocol.
        pub const SERVICE: u8 = 5;
        /// The message in it.
        pub const ORDER: u8 = 36;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    /// Any message of the service.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message {
        /// MSG_CLIENTMOVE.
        MsgClientmove(MsgClientmove),
    }

    impl Message {
        /// Reads the payload of the message with this number.
        ///
        /// # Errors
        /// Malformed, for another number; else those of the fields.
        pub fn decode<'n, T: Trace<'n>>(order: u8, reader: &mut Reader<'_, T>) -> Result<Self> {
            match order {
                36 => MsgClientmove::decode_fields(reader).map(Self::MsgClientmove),
                other => Err(Error::malformed("a message of this service", other.to_string())),
            }
        }
    }

    impl Message {
        /// The number in the service.
        #[must_use]
        pub fn order(&self) -> u8 {
            match self {
                Self::MsgClientmove(_) => 36,
            }
        }

        /// Writes the payload.
        ///
        /// # Errors
        /// Value, for a string that is too long.
        pub fn encode(&self, writer: &mut Writer) -> Result<()> {
            match self {
                Self::MsgClientmove(message) => message.encode_fields(writer),
            }
        }
    }
}

/// LOGIN (7).
pub mod login {
    use worldwire_core::{Error, Reader, Record, Result, Trace, Writer, record};
    use worldwire_ki::types::Str;

    record! {
        /// MSG_CHARACTERINFO (7/1).
        pub struct MsgCharacterinfo<'d> {
            /// STR.
            character_info "CharacterInfo": Str<'d>,
        }
    }

    impl MsgCharacterinfo<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 1;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_CHARACTERLIST (7/2).
        pub struct MsgCharacterlist {
            /// UINT.
            error "Error": worldwire_ki::LoginError,
        }
    }

    impl MsgCharacterlist {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 2;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_CHARACTERSELECTED (7/3).
        pub struct MsgCharacterselected<'d> {
            /// STR.
            ip "IP": Str<'d>,
            /// INT.
            tcp_port "TCPPort": i32,
            /// INT.
            udp_port "UDPPort": i32,
            /// STR.
            key "Key": Str<'d>,
            /// GID.
            user_id "UserID": u64,
            /// GID.
            char_id "CharID": u64,
            /// GID.
            zone_id "ZoneID": u64,
            /// STR.
            zone_name "ZoneName": Str<'d>,
            /// STR.
            location "Location": Str<'d>,
            /// INT.
            slot "Slot": i32,
            /// INT.
            prep_phase "PrepPhase": i32,
            /// INT.
            error "Error": worldwire_ki::LoginErrorInt,
            /// STR.
            login_server "LoginServer": Str<'d>,
        }
    }

    impl MsgCharacterselected<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 3;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_CREATECHARACTER (7/4).
        pub struct MsgCreatecharacter<'d> {
            /// STR.
            creation_info "CreationInfo": Str<'d>,
        }
    }

    impl MsgCreatecharacter<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 4;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_CREATECHARACTERRESPONSE (7/5).
        pub struct MsgCreatecharacterresponse {
            /// INT.
            error_code "ErrorCode": worldwire_ki::LoginErrorInt,
        }
    }

    impl MsgCreatecharacterresponse {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 5;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_DELETECHARACTER (7/6).
        pub struct MsgDeletecharacter {
            /// GID.
            char_id "CharID": u64,
        }
    }

    impl MsgDeletecharacter {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 6;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_DELETECHARACTERRESPONSE (7/7).
        pub struct MsgDeletecharacterresponse {
            /// INT.
            error_code "ErrorCode": worldwire_ki::LoginErrorInt,
        }
    }

    impl MsgDeletecharacterresponse {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 7;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_REQUESTCHARACTERLIST (7/8).
        pub struct MsgRequestcharacterlist {
        }
    }

    impl MsgRequestcharacterlist {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 8;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_REQUESTSERVERLIST (7/9).
        pub struct MsgRequestserverlist {
        }
    }

    impl MsgRequestserverlist {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 9;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_SELECTCHARACTER (7/10).
        pub struct MsgSelectcharacter<'d> {
            /// GID.
            char_id "CharID": u64,
            /// STR.
            server_name "ServerName": Str<'d>,
        }
    }

    impl MsgSelectcharacter<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 10;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_SERVERLIST (7/11).
        pub struct MsgServerlist {
        }
    }

    impl MsgServerlist {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 11;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_STARTCHARACTERLIST (7/12).
        pub struct MsgStartcharacterlist<'d> {
            /// STR.
            login_server "LoginServer": Str<'d>,
            /// INT.
            purchased_character_slots "PurchasedCharacterSlots": i32,
        }
    }

    impl MsgStartcharacterlist<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 12;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_USER_AUTHEN (7/13).
        pub struct MsgUserAuthen<'d> {
            /// STR.
            rec1 "Rec1": Str<'d>,
            /// STR.
            version "Version": Str<'d>,
            /// STR.
            revision "Revision": Str<'d>,
            /// STR.
            data_revision "DataRevision": Str<'d>,
            /// STR.
            crc "CRC": Str<'d>,
            /// GID.
            machine_id "MachineID": u64,
            /// STR.
            patch_client_id "PatchClientID": Str<'d>,
        }
    }

    impl MsgUserAuthen<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 13;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_USER_AUTHEN_RSP (7/14).
        pub struct MsgUserAuthenRsp<'d> {
            /// INT.
            error "Error": worldwire_ki::LoginErrorInt,
            /// GID.
            user_id "UserID": u64,
            /// STR.
            rec1 "Rec1": Str<'d>,
            /// STR.
            reason "Reason": Str<'d>,
            /// STR.
            time_stamp "TimeStamp": Str<'d>,
            /// INT.
            paying_user "PayingUser": i32,
            /// INT.
            flags "Flags": i32,
        }
    }

    impl MsgUserAuthenRsp<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 14;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_USER_VALIDATE (7/15).
        pub struct MsgUserValidate<'d> {
            /// GID.
            user_id "UserID": u64,
            /// STR.
            pass_key3 "PassKey3": Str<'d>,
            /// GID.
            machine_id "MachineID": u64,
            /// STR.
            locale "Locale": Str<'d>,
            /// STR.
            patch_client_id "PatchClientID": Str<'d>,
        }
    }

    impl MsgUserValidate<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 15;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 1;
    }

    record! {
        /// MSG_USER_VALIDATE_RSP (7/16).
        pub struct MsgUserValidateRsp<'d> {
            /// INT.
            error "Error": worldwire_ki::LoginErrorInt,
            /// STR.
            reason "Reason": Str<'d>,
            /// GID.
            user_id "UserID": u64,
            /// STR.
            time_stamp "TimeStamp": Str<'d>,
            /// INT.
            paying_user "PayingUser": i32,
            /// INT.
            flags "Flags": i32,
        }
    }

    impl MsgUserValidateRsp<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 16;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_DISCONNECT_LOGIN_AFK (7/17).
        pub struct MsgDisconnectLoginAfk {
            /// BYT.
            warning "Warning": i8,
        }
    }

    impl MsgDisconnectLoginAfk {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 17;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_LOGIN_NOT_AFK (7/18).
        pub struct MsgLoginNotAfk {
            /// UINT.
            badge_name_id "BadgeNameID": u32,
        }
    }

    impl MsgLoginNotAfk {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 18;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_LOGINSERVERSHUTDOWN (7/19).
        pub struct MsgLoginservershutdown {
            /// UINT.
            message "Message": u32,
        }
    }

    impl MsgLoginservershutdown {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 19;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_USER_ADMIT_IND (7/20).
        pub struct MsgUserAdmitInd {
            /// INT.
            status "Status": i32,
            /// UINT.
            position_in_queue "PositionInQueue": u32,
        }
    }

    impl MsgUserAdmitInd {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 20;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_WEBCHARACTERINFO (7/21).
        pub struct MsgWebcharacterinfo {
            /// INT.
            name "Name": i32,
            /// INT.
            gender "Gender": i32,
            /// INT.
            school "School": i32,
        }
    }

    impl MsgWebcharacterinfo {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 21;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_USER_AUTHEN_V2 (7/22).
        pub struct MsgUserAuthenV2<'d> {
            /// STR.
            rec1 "Rec1": Str<'d>,
            /// STR.
            version "Version": Str<'d>,
            /// STR.
            revision "Revision": Str<'d>,
            /// STR.
            data_revision "DataRevision": Str<'d>,
            /// STR.
            crc "CRC": Str<'d>,
            /// GID.
            machine_id "MachineID": u64,
            /// STR.
            locale "Locale": Str<'d>,
            /// STR.
            patch_client_id "PatchClientID": Str<'d>,
        }
    }

    impl MsgUserAuthenV2<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 22;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_SAVECHARACTER (7/23).
        pub struct MsgSavecharacter {
            /// GID.
            char_id "CharID": u64,
            /// UBYT.
            success "Success": u8,
        }
    }

    impl MsgSavecharacter {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 23;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_WEB_AUTHEN (7/24).
        pub struct MsgWebAuthen<'d> {
            /// STR.
            rec1 "Rec1": Str<'d>,
            /// STR.
            version "Version": Str<'d>,
            /// STR.
            revision "Revision": Str<'d>,
            /// STR.
            data_revision "DataRevision": Str<'d>,
            /// STR.
            crc "CRC": Str<'d>,
            /// GID.
            machine_id "MachineID": u64,
        }
    }

    impl MsgWebAuthen<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 24;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_WEB_VALIDATE (7/25).
        pub struct MsgWebValidate<'d> {
            /// GID.
            user_id "UserID": u64,
            /// STR.
            pass_key3 "PassKey3": Str<'d>,
            /// GID.
            machine_id "MachineID": u64,
            /// STR.
            locale "Locale": Str<'d>,
        }
    }

    impl MsgWebValidate<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 25;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_CHANGECHARACTERNAME (7/26).
        pub struct MsgChangecharactername<'d> {
            /// GID.
            char_id "CharID": u64,
            /// STR.
            new_name "NewName": Str<'d>,
            /// STR.
            server_name "ServerName": Str<'d>,
        }
    }

    impl MsgChangecharactername<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 26;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_USER_AUTHEN_V3 (7/27).
        pub struct MsgUserAuthenV3<'d> {
            /// STR.
            rec1 "Rec1": Str<'d>,
            /// STR.
            version "Version": Str<'d>,
            /// STR.
            revision "Revision": Str<'d>,
            /// STR.
            data_revision "DataRevision": Str<'d>,
            /// STR.
            crc "CRC": Str<'d>,
            /// GID.
            machine_id "MachineID": u64,
            /// STR.
            locale "Locale": Str<'d>,
            /// STR.
            patch_client_id "PatchClientID": Str<'d>,
            /// UINT.
            is_steam_patcher "IsSteamPatcher": u32,
            /// UBYT.
            console_type "ConsoleType": u8,
        }
    }

    impl MsgUserAuthenV3<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 27;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 1;
    }

    record! {
        /// MSG_LOGINLOGCHARACTERCREATION (7/28).
        pub struct MsgLoginlogcharactercreation {
            /// UINT.
            stage "Stage": u32,
            /// UINT.
            parameter "Parameter": u32,
        }
    }

    impl MsgLoginlogcharactercreation {
        /// The protocol.
        pub const SERVICE: u8 = 7;
        /// The message in it.
        pub const ORDER: u8 = 28;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    /// Any message of the service.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message<'d> {
        /// MSG_CHARACTERINFO.
        MsgCharacterinfo(MsgCharacterinfo<'d>),
        /// MSG_CHARACTERLIST.
        MsgCharacterlist(MsgCharacterlist),
        /// MSG_CHARACTERSELECTED.
        MsgCharacterselected(MsgCharacterselected<'d>),
        /// MSG_CREATECHARACTER.
        MsgCreatecharacter(MsgCreatecharacter<'d>),
        /// MSG_CREATECHARACTERRESPONSE.
        MsgCreatecharacterresponse(MsgCreatecharacterresponse),
        /// MSG_DELETECHARACTER.
        MsgDeletecharacter(MsgDeletecharacter),
        /// MSG_DELETECHARACTERRESPONSE.
        MsgDeletecharacterresponse(MsgDeletecharacterresponse),
        /// MSG_REQUESTCHARACTERLIST.
        MsgRequestcharacterlist(MsgRequestcharacterlist),
        /// MSG_REQUESTSERVERLIST.
        MsgRequestserverlist(MsgRequestserverlist),
        /// MSG_SELECTCHARACTER.
        MsgSelectcharacter(MsgSelectcharacter<'d>),
        /// MSG_SERVERLIST.
        MsgServerlist(MsgServerlist),
        /// MSG_STARTCHARACTERLIST.
        MsgStartcharacterlist(MsgStartcharacterlist<'d>),
        /// MSG_USER_AUTHEN.
        MsgUserAuthen(MsgUserAuthen<'d>),
        /// MSG_USER_AUTHEN_RSP.
        MsgUserAuthenRsp(MsgUserAuthenRsp<'d>),
        /// MSG_USER_VALIDATE.
        MsgUserValidate(MsgUserValidate<'d>),
        /// MSG_USER_VALIDATE_RSP.
        MsgUserValidateRsp(MsgUserValidateRsp<'d>),
        /// MSG_DISCONNECT_LOGIN_AFK.
        MsgDisconnectLoginAfk(MsgDisconnectLoginAfk),
        /// MSG_LOGIN_NOT_AFK.
        MsgLoginNotAfk(MsgLoginNotAfk),
        /// MSG_LOGINSERVERSHUTDOWN.
        MsgLoginservershutdown(MsgLoginservershutdown),
        /// MSG_USER_ADMIT_IND.
        MsgUserAdmitInd(MsgUserAdmitInd),
        /// MSG_WEBCHARACTERINFO.
        MsgWebcharacterinfo(MsgWebcharacterinfo),
        /// MSG_USER_AUTHEN_V2.
        MsgUserAuthenV2(MsgUserAuthenV2<'d>),
        /// MSG_SAVECHARACTER.
        MsgSavecharacter(MsgSavecharacter),
        /// MSG_WEB_AUTHEN.
        MsgWebAuthen(MsgWebAuthen<'d>),
        /// MSG_WEB_VALIDATE.
        MsgWebValidate(MsgWebValidate<'d>),
        /// MSG_CHANGECHARACTERNAME.
        MsgChangecharactername(MsgChangecharactername<'d>),
        /// MSG_USER_AUTHEN_V3.
        MsgUserAuthenV3(MsgUserAuthenV3<'d>),
        /// MSG_LOGINLOGCHARACTERCREATION.
        MsgLoginlogcharactercreation(MsgLoginlogcharactercreation),
    }

    impl<'d> Message<'d> {
        /// Reads the payload of the message with this number.
        ///
        /// # Errors
        /// Malformed, for another number; else those of the fields.
        pub fn decode<'n, T: Trace<'n>>(order: u8, reader: &mut Reader<'d, T>) -> Result<Self> {
            match order {
                1 => MsgCharacterinfo::decode_fields(reader).map(Self::MsgCharacterinfo),
                2 => MsgCharacterlist::decode_fields(reader).map(Self::MsgCharacterlist),
                3 => MsgCharacterselected::decode_fields(reader).map(Self::MsgCharacterselected),
                4 => MsgCreatecharacter::decode_fields(reader).map(Self::MsgCreatecharacter),
                5 => MsgCreatecharacterresponse::decode_fields(reader).map(Self::MsgCreatecharacterresponse),
                6 => MsgDeletecharacter::decode_fields(reader).map(Self::MsgDeletecharacter),
                7 => MsgDeletecharacterresponse::decode_fields(reader).map(Self::MsgDeletecharacterresponse),
                8 => MsgRequestcharacterlist::decode_fields(reader).map(Self::MsgRequestcharacterlist),
                9 => MsgRequestserverlist::decode_fields(reader).map(Self::MsgRequestserverlist),
                10 => MsgSelectcharacter::decode_fields(reader).map(Self::MsgSelectcharacter),
                11 => MsgServerlist::decode_fields(reader).map(Self::MsgServerlist),
                12 => MsgStartcharacterlist::decode_fields(reader).map(Self::MsgStartcharacterlist),
                13 => MsgUserAuthen::decode_fields(reader).map(Self::MsgUserAuthen),
                14 => MsgUserAuthenRsp::decode_fields(reader).map(Self::MsgUserAuthenRsp),
                15 => MsgUserValidate::decode_fields(reader).map(Self::MsgUserValidate),
                16 => MsgUserValidateRsp::decode_fields(reader).map(Self::MsgUserValidateRsp),
                17 => MsgDisconnectLoginAfk::decode_fields(reader).map(Self::MsgDisconnectLoginAfk),
                18 => MsgLoginNotAfk::decode_fields(reader).map(Self::MsgLoginNotAfk),
                19 => MsgLoginservershutdown::decode_fields(reader).map(Self::MsgLoginservershutdown),
                20 => MsgUserAdmitInd::decode_fields(reader).map(Self::MsgUserAdmitInd),
                21 => MsgWebcharacterinfo::decode_fields(reader).map(Self::MsgWebcharacterinfo),
                22 => MsgUserAuthenV2::decode_fields(reader).map(Self::MsgUserAuthenV2),
                23 => MsgSavecharacter::decode_fields(reader).map(Self::MsgSavecharacter),
                24 => MsgWebAuthen::decode_fields(reader).map(Self::MsgWebAuthen),
                25 => MsgWebValidate::decode_fields(reader).map(Self::MsgWebValidate),
                26 => MsgChangecharactername::decode_fields(reader).map(Self::MsgChangecharactername),
                27 => MsgUserAuthenV3::decode_fields(reader).map(Self::MsgUserAuthenV3),
                28 => MsgLoginlogcharactercreation::decode_fields(reader).map(Self::MsgLoginlogcharactercreation),
                other => Err(Error::malformed("a message of this service", other.to_string())),
            }
        }
    }

    impl Message<'_> {
        /// The number in the service.
        #[must_use]
        pub fn order(&self) -> u8 {
            match self {
                Self::MsgCharacterinfo(_) => 1,
                Self::MsgCharacterlist(_) => 2,
                Self::MsgCharacterselected(_) => 3,
                Self::MsgCreatecharacter(_) => 4,
                Self::MsgCreatecharacterresponse(_) => 5,
                Self::MsgDeletecharacter(_) => 6,
                Self::MsgDeletecharacterresponse(_) => 7,
                Self::MsgRequestcharacterlist(_) => 8,
                Self::MsgRequestserverlist(_) => 9,
                Self::MsgSelectcharacter(_) => 10,
                Self::MsgServerlist(_) => 11,
                Self::MsgStartcharacterlist(_) => 12,
                Self::MsgUserAuthen(_) => 13,
                Self::MsgUserAuthenRsp(_) => 14,
                Self::MsgUserValidate(_) => 15,
                Self::MsgUserValidateRsp(_) => 16,
                Self::MsgDisconnectLoginAfk(_) => 17,
                Self::MsgLoginNotAfk(_) => 18,
                Self::MsgLoginservershutdown(_) => 19,
                Self::MsgUserAdmitInd(_) => 20,
                Self::MsgWebcharacterinfo(_) => 21,
                Self::MsgUserAuthenV2(_) => 22,
                Self::MsgSavecharacter(_) => 23,
                Self::MsgWebAuthen(_) => 24,
                Self::MsgWebValidate(_) => 25,
                Self::MsgChangecharactername(_) => 26,
                Self::MsgUserAuthenV3(_) => 27,
                Self::MsgLoginlogcharactercreation(_) => 28,
            }
        }

        /// Writes the payload.
        ///
        /// # Errors
        /// Value, for a string that is too long.
        pub fn encode(&self, writer: &mut Writer) -> Result<()> {
            match self {
                Self::MsgCharacterinfo(message) => message.encode_fields(writer),
                Self::MsgCharacterlist(message) => message.encode_fields(writer),
                Self::MsgCharacterselected(message) => message.encode_fields(writer),
                Self::MsgCreatecharacter(message) => message.encode_fields(writer),
                Self::MsgCreatecharacterresponse(message) => message.encode_fields(writer),
                Self::MsgDeletecharacter(message) => message.encode_fields(writer),
                Self::MsgDeletecharacterresponse(message) => message.encode_fields(writer),
                Self::MsgRequestcharacterlist(message) => message.encode_fields(writer),
                Self::MsgRequestserverlist(message) => message.encode_fields(writer),
                Self::MsgSelectcharacter(message) => message.encode_fields(writer),
                Self::MsgServerlist(message) => message.encode_fields(writer),
                Self::MsgStartcharacterlist(message) => message.encode_fields(writer),
                Self::MsgUserAuthen(message) => message.encode_fields(writer),
                Self::MsgUserAuthenRsp(message) => message.encode_fields(writer),
                Self::MsgUserValidate(message) => message.encode_fields(writer),
                Self::MsgUserValidateRsp(message) => message.encode_fields(writer),
                Self::MsgDisconnectLoginAfk(message) => message.encode_fields(writer),
                Self::MsgLoginNotAfk(message) => message.encode_fields(writer),
                Self::MsgLoginservershutdown(message) => message.encode_fields(writer),
                Self::MsgUserAdmitInd(message) => message.encode_fields(writer),
                Self::MsgWebcharacterinfo(message) => message.encode_fields(writer),
                Self::MsgUserAuthenV2(message) => message.encode_fields(writer),
                Self::MsgSavecharacter(message) => message.encode_fields(writer),
                Self::MsgWebAuthen(message) => message.encode_fields(writer),
                Self::MsgWebValidate(message) => message.encode_fields(writer),
                Self::MsgChangecharactername(message) => message.encode_fields(writer),
                Self::MsgUserAuthenV3(message) => message.encode_fields(writer),
                Self::MsgLoginlogcharactercreation(message) => message.encode_fields(writer),
            }
        }
    }
}

/// MADE-UP (200).
/// \*/ fn main() {} /\* \[link\](x) \`code\` \# heading
pub mod made_up {
    use worldwire_core::{Error, Reader, Record, Result, Trace, Writer, record};
    use worldwire_ki::types::{Dbl, Flt, Str, WStr};

    record! {
        /// MSG_ALL (200/1).
        /// Two lines "and" \\ more
        pub struct MsgAll<'d> {
            /// BYT.
            type_ "type": i8,
            /// UBYT.
            self_ "self": u8,
            /// SHRT.
            reader_2 "reader": i16,
            /// USHRT.
            global_id "GlobalID": u16,
            /// INT.
            global_id_2 "Global_ID": i32,
            /// UINT.
            global_id_3 "globalID": u32,
            /// FLT.
            f "F": Flt,
            /// DBL.
            d "D": Dbl,
            /// GID.
            g "G": u64,
            /// STR.
            s "S": Str<'d>,
            /// WSTR.
            w "W": WStr<'d>,
            /// BOOL.
            b "B": u8,
            /// INT.
            x_y_z "X-Y.Z": i32,
        }
    }

    impl MsgAll<'_> {
        /// The protocol.
        pub const SERVICE: u8 = 200;
        /// The message in it.
        pub const ORDER: u8 = 1;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_EMPTY (200/2).
        pub struct MsgEmpty {
        }
    }

    impl MsgEmpty {
        /// The protocol.
        pub const SERVICE: u8 = 200;
        /// The message in it.
        pub const ORDER: u8 = 2;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// MSG_all (200/3).
        pub struct MsgAllNo2 {
            /// INT.
            field "\u{e9}": i32,
        }
    }

    impl MsgAllNo2 {
        /// The protocol.
        pub const SERVICE: u8 = 200;
        /// The message in it.
        pub const ORDER: u8 = 3;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    record! {
        /// Message (200/4).
        pub struct MessageNo2 {
        }
    }

    impl MessageNo2 {
        /// The protocol.
        pub const SERVICE: u8 = 200;
        /// The message in it.
        pub const ORDER: u8 = 4;
        /// What a session needs to send it.
        pub const ACCESS_LEVEL: u8 = 0;
    }

    /// Any message of the service.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message<'d> {
        /// MSG_ALL.
        MsgAll(MsgAll<'d>),
        /// MSG_EMPTY.
        MsgEmpty(MsgEmpty),
        /// MSG_all.
        MsgAllNo2(MsgAllNo2),
        /// Message.
        MessageNo2(MessageNo2),
    }

    impl<'d> Message<'d> {
        /// Reads the payload of the message with this number.
        ///
        /// # Errors
        /// Malformed, for another number; else those of the fields.
        pub fn decode<'n, T: Trace<'n>>(order: u8, reader: &mut Reader<'d, T>) -> Result<Self> {
            match order {
                1 => MsgAll::decode_fields(reader).map(Self::MsgAll),
                2 => MsgEmpty::decode_fields(reader).map(Self::MsgEmpty),
                3 => MsgAllNo2::decode_fields(reader).map(Self::MsgAllNo2),
                4 => MessageNo2::decode_fields(reader).map(Self::MessageNo2),
                other => Err(Error::malformed("a message of this service", other.to_string())),
            }
        }
    }

    impl Message<'_> {
        /// The number in the service.
        #[must_use]
        pub fn order(&self) -> u8 {
            match self {
                Self::MsgAll(_) => 1,
                Self::MsgEmpty(_) => 2,
                Self::MsgAllNo2(_) => 3,
                Self::MessageNo2(_) => 4,
            }
        }

        /// Writes the payload.
        ///
        /// # Errors
        /// Value, for a string that is too long.
        pub fn encode(&self, writer: &mut Writer) -> Result<()> {
            match self {
                Self::MsgAll(message) => message.encode_fields(writer),
                Self::MsgEmpty(message) => message.encode_fields(writer),
                Self::MsgAllNo2(message) => message.encode_fields(writer),
                Self::MessageNo2(message) => message.encode_fields(writer),
            }
        }
    }
}
